package expression

func valueCure(word string) string {
	switch word {
	case "concatws":
		return "write join(separator, a, b)"
	case "splitpart":
		return "write split_part(text, separator, n): part n, from 0"
	case "strsplit", "explode", "stringtoarray", "tokenize":
		return "write split(text, separator), a list"
	case "arraylength", "cardinality", "arraysize":
		return "write len(list)"
	case "arraycontains", "arrayhas", "listcontains", "has":
		return "write x in list"
	case "arrayjoin", "arraytostring", "implode", "stringagg":
		return "write join(separator, list)"
	case "uniq", "unique", "dedupe", "arraydistinct", "listdistinct":
		return "write distinct(list)"
	case "arraysort", "listsort", "sorted", "sortasc":
		return "write sort(list)"
	case "arraymax", "listmax", "arraymin", "listmin":
		return "write max(list) or min(list)"
	case "listsum", "arraysum", "total":
		return "write sum(list)"
	case "elementat", "first", "last", "head", "nth", "arrayget":
		return "write list[0], or list[-1] for the last"
	case "lpad", "padstart", "padleft", "zfill":
		return "write pad_left(text, width, '0')"
	case "rpad", "padend", "padright", "ljust":
		return "write pad_right(text, width, ' ')"
	case "sha256", "md5", "crc32", "sha1":
		return "write hash(text, '" + word + "')"
	case "jsonextract", "jsonvalue", "jsonquery", "jsonpath", "get":
		return "write json_get(text, 'a.b[0]')"
	case "parsejson", "fromjson", "tojson", "jsonparse":
		return "write json(text)"
	case "unhex", "fromhex", "frombase64", "base64decode", "unbase64":
		return "write decode(text, 'hex') or decode(text, 'base64')"
	case "hex", "tohex", "tobase64", "base64", "base64encode":
		return "write encode(bytes, 'hex') or encode(bytes, 'base64')"
	case "touuid", "guid", "toguid", "parseuuid":
		return "write uuid(text)"
	case "adddays", "dateadd", "plusdays":
		return "write date + 3; add_months(date, n) for months"
	case "datediff", "daysbetween", "datesub":
		return "write b - a: the days between two dates; months_between(a, b) for months"
	case "datetrunc", "trunc", "startof", "firstday":
		return "write truncate(date, 'month')"
	case "dayofweek", "dow", "isodow":
		return "write weekday(date): 1 for Monday to 7 for Sunday"
	case "nextbusinessday", "addbusinessdays", "workday", "addworkdays", "nextworkday":
		return "write business_day(date, 1, 'TARGET')"
	case "isworkday", "isholiday", "isweekend", "isbankingday":
		return "write is_business_day(date, 'TARGET')"
	case "isodate", "strftime", "dateformat":
		return "write format(date, 'yyyy-MM-dd')"
	case "tryint", "trycast", "safe", "catch", "iferror":
		return "write try(int(x), 0)"
	case "totimestamp", "fromunixtime", "fromepoch", "parsetime":
		return "write timestamp(x), timestamp(x, 'dd.MM.yyyy HH:mm') or timestamp(x, 'epoch_ms')"
	}
	return ""
}
