package expression

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

type slip struct {
	pattern *regexp.Regexp
	msg     string
	hint    string
}

func slips() []slip {
	at := func(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)`) }
	return []slip{
		{at(`===`), "=== is not an operator", "write =="},
		{at(`!==`), "!== is not an operator", "write !="},
		{at(`=~`), "=~ is not an operator", "write matches: text matches 'PATTERN'"},
		{at(`!?~`), "~ is not an operator", "write matches: text matches 'PATTERN'"},
		{at(`=`), "= is not an operator", "write == to compare"},
		{at(`<>`), "<> is not an operator", "write !="},
		{at(`(?i)is\s+not\s+null\b`), "is not null is SQL", "write != nil"},
		{at(`(?i)is\s+null\b`), "is null is SQL", "write == nil"},
		{at(`(?i)is\b`), "is is not an operator", "write ==, or == nil"},
		{at(`(?i)(not\s+)?(i?like|similar|regexp|rlike)\b`), "expressions have no LIKE", "write startsWith, endsWith, contains or matches: text startsWith 'D'"},
		{at(`(?i)(not\s+)?between\b`), "expressions have no BETWEEN", "write x >= 1 and x <= 9, or x in 1..9"},
		{at(`AND\b`), "AND is not an operator", "write and"},
		{at(`OR\b`), "OR is not an operator", "write or"},
		{at(`NOT\b`), "NOT is not an operator", "write not"},
		{at(`(?:IN|In)\b`), "IN is not an operator", "write in [a, b, c]"},
		{at(`(?i)(case|when|then)\b`), "expressions have no CASE", "write condition ? a : b"},
		{at(`(?i)as\b`), "expressions have no AS", "write int(x), float(x), string(x) or date(x)"},
		{at(`contains\s*\(`), "contains is an operator", "write text contains 'x'"},
		{at(`startsWith\s*\(`), "startsWith is an operator", "write text startsWith 'x'"},
		{at(`endsWith\s*\(`), "endsWith is an operator", "write text endsWith 'x'"},
		{at(`matches\s*\(`), "matches is an operator", "write text matches 'PATTERN'"},
		{at(`in\s*\(`), "in is an operator", "write x in [a, b, c]"},
		{at(`and\s*\(`), "and is an operator", "write a and b"},
		{at(`or\s*\(`), "or is an operator", "write a or b"},
		{at(`&|\|`), "& and | are not operators", "write and, or"},
		{at(`\$\{`), "${ is not closed", "expressions are written without it"},
		{at(`\{\{`), "{{ }} is not part of an expression", "write the name alone, such as item.id"},
		{at(`;`), "expressions have no ;", "leave it out"},
	}
}

func syntaxError(text string, offset int, msg string) *Error {
	for _, from := range tokenStarts(text, offset) {
		if m := wrapped.FindStringSubmatch(text[from:]); m != nil && strings.HasPrefix(text[from:], m[0]) {
			return &Error{Offset: from, Msg: "expressions are written without " + m[1] + " " + closing(m[1]), Hint: "write " + wrapped.ReplaceAllString(text, "$2")}
		}
		for _, s := range slips() {
			if s.pattern.MatchString(text[from:]) {
				return &Error{Offset: from, Msg: s.msg, Hint: s.hint}
			}
		}
	}
	before := strings.TrimRight(text[:offset], " \t\n")
	if strings.HasPrefix(text[offset:], ",") && ifCall.MatchString(before) {
		at := ifCall.FindStringIndex(before)[0]
		return &Error{Offset: at, Msg: "if is not a function", Hint: "write condition ? a : b"}
	}
	if strings.HasPrefix(text[offset:], ",") && sqlList.MatchString(before) {
		at := sqlList.FindStringIndex(before)[0]
		return &Error{Offset: at, Msg: "in needs a list in [ ]", Hint: "write x in [a, b, c]"}
	}
	if m := unexpected.FindStringSubmatch(msg); m != nil {
		return &Error{Offset: offset, Msg: m[1] + " is not expected here"}
	}
	return &Error{Offset: offset, Msg: msg}
}

func closing(opening string) string { return strings.Repeat("}", strings.Count(opening, "{")) }

var (
	wrapped    = regexp.MustCompile(`(\$\{|\{\{)-?\s*([^{}]*?)\s*-?\}\}?`)
	ifCall     = regexp.MustCompile(`\bif\s*\([^()]*$`)
	sqlList    = regexp.MustCompile(`\bin\s*\([^()]*$`)
	unexpected = regexp.MustCompile(`^unexpected token \w+\("(.*)"\)$`)
)

// tokenStarts: the parser stops inside an operator that it reads as two, and after a word that it
// reads as a name.
func tokenStarts(text string, offset int) []int {
	starts := []int{offset}
	from := offset
	for from > 0 && strings.IndexByte("=!<>~&|{$", text[from-1]) >= 0 {
		from--
	}
	if from < offset {
		starts = append([]int{from}, starts...)
	}
	word := strings.TrimRight(text[:offset], " \t\n")
	begin := len(word)
	for begin > 0 && isLetter(word[begin-1]) {
		begin--
	}
	if begin < len(word) {
		starts = append(starts, begin)
	}
	return starts
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func foreignNull(name string) bool {
	return slices.Contains([]string{"null", "none", "undefined"}, strings.ToLower(name))
}

func nameCure(name string, root node) string {
	switch {
	case foreignNull(name) || strings.EqualFold(name, "nil"):
		return "write nil"
	case strings.EqualFold(name, "true"), strings.EqualFold(name, "false"):
		return "write " + strings.ToLower(name)
	}
	for _, space := range root.names() {
		below, ok := root.members(space)
		if ok && below.members != nil && slices.Contains(below.names(), name) {
			return "write " + space + "." + name
		}
	}
	return ""
}

func functionCure(name string) string {
	switch word := strings.ToLower(strings.ReplaceAll(name, "_", "")); word {
	case "coalesce", "ifnull", "nvl", "default":
		return "write a ?? b ?? c: the first that is not nil"
	case "isnull", "isnil", "isempty", "isnone":
		return "write x == nil"
	case "isnotnull", "notnull":
		return "write x != nil"
	case "concat":
		return "write a + b; string(x) converts a number to a text"
	case "iif", "cond", "ternary":
		return "write condition ? a : b"
	case "contains", "startswith", "endswith", "matches", "includes", "regexp", "regexpmatch", "regexplike", "match", "rlike":
		operator := map[string]string{"startswith": "startsWith", "endswith": "endsWith", "contains": "contains", "includes": "contains"}[word]
		if operator == "" {
			operator = "matches"
		}
		return "write text " + operator + " 'x'"
	case "nullif":
		return "write a == b ? nil : a"
	case "equals", "eq":
		return "write a == b"
	case "mod":
		return "write a % b"
	case "pow", "power":
		return "write a ** b"
	case "toupper", "touppercase", "uppercase", "ucase":
		return "write upper(text)"
	case "tolower", "tolowercase", "lowercase", "lcase":
		return "write lower(text)"
	case "length", "size", "count", "strlen", "charlength":
		return "write len(text)"
	case "substring", "mid", "left", "right", "slice":
		return "write substr(text, from, count)"
	case "strip", "ltrim", "rtrim":
		return "write trim(text)"
	case "cast", "toint", "integer", "parseint", "number", "tonumber":
		return "write int(x) or float(x)"
	case "tostring", "str", "text", "tochar":
		return "write string(x), or format(x, LAYOUT) for a date"
	case "todate", "parsedate", "strtodate":
		return "write date(x), or date(x, 'dd.MM.yyyy')"
	case "currentdate", "getdate":
		return "pass the day as a parameter: params.day"
	}
	if cure := valueCure(strings.ToLower(strings.ReplaceAll(name, "_", ""))); cure != "" {
		return cure
	}
	if lower := strings.ToLower(name); lower != name {
		if _, ok := functions()[lower]; ok {
			return "write " + lower
		}
	}
	return ""
}

func listed(names []string) string {
	const few = 20
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return " (there is " + strings.Join(names, ", ") + ")"
}
