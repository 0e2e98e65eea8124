package gormdb

import "strings"

// keepsPostgres reports that a text leaves the session unchanged. An unknown text may have changed it,
// which costs a message at the end of the step.
func keepsPostgres(query string) bool {
	if mayBeScript(query) && strings.Contains(query, `\`) {
		return false // E'\'': words would take the rest for a literal
	}
	first, before, keeps := "", "", true
	tokens(query, func(word string, call bool) bool {
		switch {
		case word == ";":
			first, before = "", ""
			return true
		case first == "":
			first = word
			keeps = keepsVerb(word)
		case first == "SET":
			keeps = before != "SET" || word == "LOCAL" || word == "CONSTRAINTS" || word == "TRANSACTION"
		default:
			keeps = keepsWord(word) && (!call || definesNames(first) || namesTable(before) || isKnownCall(word))
		}
		before = word
		return keeps
	})
	return keeps && before != "SET"
}

func keepsVerb(word string) bool {
	switch word {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "VALUES", "WITH", "TABLE", "COPY", "EXPLAIN",
		"SAVEPOINT", "RELEASE", "ROLLBACK", "SET", "SHOW", "LOCK", "NOTIFY",
		"ANALYZE", "VACUUM", "REINDEX", "CLUSTER", "REFRESH":
		return true
	}
	return definesNames(word)
}

func definesNames(verb string) bool {
	switch verb {
	case "CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "GRANT", "REVOKE":
		return true
	}
	return false
}

func keepsWord(word string) bool {
	switch word {
	case "TEMP", "TEMPORARY", "PG_TEMP":
		return false
	}
	return true
}

func namesTable(word string) bool {
	switch word {
	case "INTO", "COPY", "AS", "WITH", "RECURSIVE", "JOIN":
		return true
	}
	return false
}

func isKnownCall(word string) bool {
	switch word {
	case "VALUES", "IN", "EXISTS", "ANY", "ALL", "SOME", "AND", "OR", "NOT", "ON", "USING", "OVER", "FILTER", "CASE", "WHEN", "THEN", "ELSE",
		"SELECT", "FROM", "WHERE", "SET", "BY", "CONFLICT", "INTERVAL", "ROW", "ARRAY", "LATERAL", "UNION", "EXCEPT", "INTERSECT", "MATERIALIZED",
		"CAST", "EXTRACT", "COALESCE", "NULLIF", "GREATEST", "LEAST", "SUBSTRING", "TRIM", "POSITION", "OVERLAY",
		"VARCHAR", "CHAR", "CHARACTER", "NUMERIC", "DECIMAL", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "BIT", "FLOAT", "VARYING",
		"COUNT", "SUM", "MIN", "MAX", "AVG", "BOOL_AND", "BOOL_OR", "STRING_AGG", "ARRAY_AGG", "JSON_AGG", "JSONB_AGG",
		"ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTILE",
		"LOWER", "UPPER", "INITCAP", "LENGTH", "CHAR_LENGTH", "OCTET_LENGTH", "CONCAT", "CONCAT_WS", "REPLACE", "SPLIT_PART", "LEFT", "RIGHT",
		"LPAD", "RPAD", "LTRIM", "RTRIM", "BTRIM", "SUBSTR", "STRPOS", "REPEAT", "REVERSE", "TRANSLATE", "FORMAT", "MD5", "HASHTEXT",
		"REGEXP_REPLACE", "REGEXP_MATCHES", "REGEXP_MATCH", "STRING_TO_ARRAY", "ARRAY_TO_STRING", "ARRAY_LENGTH", "CARDINALITY", "UNNEST",
		"ABS", "ROUND", "CEIL", "CEILING", "FLOOR", "TRUNC", "MOD", "POWER", "SQRT", "SIGN", "RANDOM", "GENERATE_SERIES", "WIDTH_BUCKET",
		"NOW", "CLOCK_TIMESTAMP", "DATE", "DATE_TRUNC", "DATE_PART", "AGE", "TO_CHAR", "TO_DATE", "TO_TIMESTAMP", "TO_NUMBER", "MAKE_DATE", "MAKE_INTERVAL",
		"JSON_BUILD_OBJECT", "JSONB_BUILD_OBJECT", "TO_JSON", "TO_JSONB", "ROW_TO_JSON", "GEN_RANDOM_UUID",
		"CURRENT_SETTING", "CURRENT_DATABASE", "CURRENT_SCHEMA", "PG_BACKEND_PID", "PG_SLEEP", "TO_REGCLASS", "FORMAT_TYPE", "QUOTE_IDENT",
		"PG_ADVISORY_XACT_LOCK", "PG_TRY_ADVISORY_XACT_LOCK", "NEXTVAL":
		return true
	}
	return false
}

// protect makes a reader of SQLite read-only; every transaction on one begins with it.
const protect = "PRAGMA query_only = 1"

func keepsSQLite(query string) bool {
	if query == protect {
		return true
	}
	first, before, keeps := "", "", true
	tokens(query, func(word string, call bool) bool {
		switch {
		case word == ";":
			first, before = "", ""
			return true
		case first == "":
			first = word
			keeps = keepsVerb(word) || word == "REPLACE" || word == "PRAGMA"
		case first == "PRAGMA":
			keeps = before != "PRAGMA" || readsOnly(word) || !strings.ContainsAny(query, "=(")
		default:
			keeps = keepsWord(word)
		}
		before = word
		return keeps
	})
	return keeps
}

func readsOnly(pragma string) bool {
	switch pragma {
	case "TABLE_INFO", "TABLE_XINFO", "TABLE_LIST", "INDEX_LIST", "INDEX_INFO", "INDEX_XINFO", "FOREIGN_KEY_LIST",
		"FOREIGN_KEY_CHECK", "INTEGRITY_CHECK", "QUICK_CHECK", "OPTIMIZE", "WAL_CHECKPOINT", "USER_VERSION", "INCREMENTAL_VACUUM":
		return true
	}
	return false
}
