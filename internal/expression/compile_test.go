//test:plain

package expression_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func of[T any]() expression.Var { return expression.Var{Type: reflect.TypeFor[T]()} }

func orNull[T any]() expression.Var {
	return expression.Var{Type: reflect.TypeFor[T](), Nullable: true}
}

func scope() expression.Scope {
	return expression.Scope{
		"params": {Fields: map[string]expression.Var{
			"year": of[int64](), "rate": of[float64](), "name": of[string](), "dry": of[bool](),
			"day": of[row.Date](), "at": of[time.Time](), "wait": of[time.Duration](),
			"note": orNull[string](), "limit": orNull[int64](), "till": of[*row.Date](), "sure": orNull[bool](),
			"tags": of[map[string]string](), "small": of[uint8](),
		}},
		"env": {Open: true},
		"job": {Fields: map[string]expression.Var{"name": of[string]()}},
	}
}

func vars() map[string]any {
	return map[string]any{
		"params": map[string]any{
			"year": int64(1990), "rate": 0.5, "name": "Größe", "dry": true,
			"day": row.NewDate(2026, 1, 31), "at": time.Date(2026, 1, 31, 23, 30, 0, 0, time.UTC), "wait": 90 * time.Second,
			"tags": map[string]string{"a": "b"}, "small": uint8(7),
		},
		"env": map[string]any{"HOME": "/root"},
		"job": map[string]any{"name": "nightly"},
	}
}

func TestAMistakeIsReportedAtItsByteInTheText(t *testing.T) {
	t.Parallel()
	// » stands before the byte that is reported.
	for text, message := range map[string]string{
		"»":                                       "empty",
		"  »  ":                                   "empty",
		"params.»yaer > 1":                        "params has no field yaer (did you mean year?)",
		"»parms.year > 1":                         "unknown name parms (did you mean params?)",
		"'äöü' == params.»nmae":                   "did you mean name?",
		"params.year > 1 and »nope":               "unknown name nope (there is env, job, params)",
		"params.year »> 'a'":                      "> cannot compare an int and a string: write int(x) or string(x)",
		"params.day »>= '2026-01-01'":             "write date('2026-01-31')",
		"params.at »< params.day":                 "write date(x) or timestamp(x)",
		"params.at »== '2026'":                    "write timestamp(",
		"params.dry »< true":                      "< cannot compare bools",
		"params.name »+ 1":                        "convert it to a text: string(x)",
		"params.rate »% 2":                        "% is not defined for a float and an int",
		"params.day »* 2":                         "* is not defined for a date and an int",
		"»-params.name":                           "- needs a number, not a string",
		"not »params.year":                        "a bool is needed here, not an int",
		"params.dry and »params.year":             "a bool is needed here",
		"params.dry ? 1 : »'a'":                   "the alternatives are an int and a string",
		"params.note ?? »1":                       "the alternatives are a string and an int",
		"»params.note == 'a'":                     "params.note may be null: write params.note ?? ''",
		"1 + »params.limit":                       "params.limit may be null: write params.limit ?? 0",
		"lower(»params.note)":                     "may be null",
		"'a' + »params.note":                      "may be null",
		"»params.sure and true":                   "params.sure may be null: write params.sure ?? false",
		"params.day < »params.till":               "date('2000-01-01')",
		"(»params.dry ? params.note : 'a') + 'b'": "this may be null",
		"»nil + 1":                                "nil cannot be used here",
		"»params":                                 "params is not a value: name one of its fields",
		"params.year.»month":                      "params.year is an int, which has no field month",
		"params.name.»upper()":                    "a value has no methods",
		"»uper(params.name)":                      "unknown function uper; did you mean upper?",
		"»now() > params.at":                      "expression has the same result whenever it is evaluated",
		"»today() > params.day":                   "allowed only in the default of a parameter",
		"»env('HOME')":                            "unknown function env",
		"»today()":                                "restart tomorrow",
		"»filter(params.tags, # > 1)":             "unknown function filter",
		"year(»params.name)":                      "year needs a date or a timestamp here, not a string",
		"»year()":                                 "wrong arguments of year: year(date or timestamp)",
		"round(1.5, »'a')":                        "round needs an int here",
		"»date('2026-02-30')":                     `"2026-02-30" is not a date (yyyy-MM-dd)`,
		"params.day > »date('yesterday')":         "is not a date",
		"format(params.day, »'QQ')":               `"QQ" is unknown`,
		"date(params.name, »'nn')":                `"nn" is unknown`,
		"params.name matches »'['":                "missing closing ]",
		"1 »/ 0":                                  "division by zero",
		"9223372036854775807 »+ 1":                "does not fit an int",
		"params.year in »params.tags":             "structured value",
		"params.year in »params.year":             "in needs a list [a, b, c] or a range from..to, not an int",
		"params.year in [1, »'a']":                "in cannot compare an int and a string",
		"params.rate in »1..2":                    "",
		"[1, »'a']":                               "the alternatives are an int and a string",
		"1»..2":                                   "from..to is allowed only after in",
		"»{a: 1}":                                 "a map {...} is not part of this language",
		"params.name»[0:2]":                       "substr",
		"»params[1]":                              "params is not a value",
		"»params.tags == nil":                     "structured value",
		"let »params = 1; params":                 "params is already defined",
		"let a = 1; let »a = 2; a":                "let a is defined twice",
		"1 +»":                                    "the expression is incomplete",
		"(1 + 2»":                                 "the expression is incomplete",
		"params.note ?? 'a' »+ 'b'":               "cannot be mixed. Wrap either by parentheses",
		"1 »1":                                    "1 is not expected here",
	} {
		offset := strings.Index(text, "»")
		source := strings.Replace(text, "»", "", 1)
		if strings.TrimSpace(source) == "" {
			offset = 0
		}
		if source == "params.rate in 1..2" {
			offset, message = 0, "in from..to needs ints, not a float"
		}
		_, err := expression.Compile(source, scope())
		var at *expression.Error
		require.ErrorAs(t, err, &at, "%s", source)
		require.Contains(t, at.Msg+"; "+at.Hint, message, "%s", source)
		require.Equal(t, offset, at.Offset, "%s: %s", source, at.Msg)
	}
}

func TestNullMustPassADefaultOrATest(t *testing.T) {
	t.Parallel()
	for _, safe := range []string{
		"(params.limit ?? 0) == 0",
		"params.limit == nil",
		"nil != params.limit",
		"params.limit != nil and params.limit > 3",
		"params.limit == nil or params.limit > 3",
		"params.limit == nil ? false : params.limit > 3",
		"params.limit != nil ? params.limit > 3 : true",
		"not (params.limit == nil) and params.limit > 3",
		"not (params.limit == nil or params.limit < 3) and params.limit < 9",
		"params.limit != nil && params.note != nil && params.limit > len(params.note)",
		"(params.limit == nil or params.note == nil) or params.limit > len(params.note)",
		"if params.limit == nil { true } else { params.limit > 3 }",
		"(params.dry and params.limit != nil) ? params.limit > 3 : false",
		"let l = params.limit; l != nil and l > 3",
		"let l = params.limit ?? 1; l > 3",
		"params.sure ?? params.dry",
		"params.limit == nil or params.note == nil ? false : params.limit > len(params.note)",
	} {
		p, err := expression.Compile(safe, scope())
		require.NoError(t, err, safe)
		require.False(t, p.Nullable(), safe)
		require.Equal(t, reflect.TypeFor[bool](), p.Type(), safe)
		v, err := p.Eval(vars())
		require.NoError(t, err, safe)
		require.IsType(t, true, v, safe)
	}
	for _, unsafe := range []string{
		"params.limit == nil and params.limit > 3",
		"params.limit != nil or params.limit > 3",
		"(params.limit != nil or params.dry) and params.limit > 3",
		"(params.limit == nil and params.dry) or params.limit > 3",
		"params.limit != nil ? true : params.limit > 3",
		"params.note != nil and params.limit > 3",
		"not (params.limit != nil) and params.limit > 3",
		"params.limit > 3 and params.limit != nil",
		"let l = params.limit; l > 3",
		"(let a = params.limit; a != nil) and (let a = params.limit; a > 3)",
		"(params.limit ?? params.limit) > 3",
	} {
		_, err := expression.Compile(unsafe, scope())
		var at *expression.Error
		require.ErrorAs(t, err, &at, unsafe)
		require.Contains(t, at.Msg, "may be null", unsafe)
	}
}

func TestNullabilityFollowsTheExpression(t *testing.T) {
	t.Parallel()
	for text, nullable := range map[string]bool{
		"params.note":                               true,
		"params.note ?? 'a'":                        false,
		"params.note ?? nil":                        true,
		"params.dry ? params.note : 'a'":            true,
		"params.dry ? 'a' : nil":                    true,
		"params.note != nil ? params.note : 'a'":    false,
		"params.note == nil ? 1 : len(params.note)": false,
		"params.limit ?? params.rate":               false,
		"nil":                                       true,
		"params.till":                               true,
	} {
		p, err := expression.Compile(text, scope())
		require.NoError(t, err, text)
		require.Equal(t, nullable, p.Nullable(), text)
	}
}

func TestEveryExpressionHasOneTypeAndValue(t *testing.T) {
	t.Parallel()
	day := func(y int, m time.Month, d int) row.Date { return row.NewDate(y, m, d) }
	for text, want := range map[string]any{
		"1": int64(1), "0x10": int64(16), "1.5": 1.5, "'a'": "a", "true": true, "nil": nil,
		"params.year + 1":                  int64(1991),
		"-params.year":                     int64(-1990),
		"+params.year":                     int64(1990),
		"params.year - 0.5":                1989.5,
		"params.rate * 4":                  2.0,
		"7 / 2":                            3.5,
		"div(-7, 2)":                       int64(-3),
		"-7 % 2":                           int64(-1),
		"7 % -1":                           int64(0),
		"2 ** 10":                          1024.0,
		"2 ^ 3 ^ 2":                        512.0,
		"1 + 2 * 3":                        int64(7),
		"params.small + 1":                 int64(8),
		"params.name + '!'":                "Größe!",
		"1 == 1.0":                         true,
		"1 < params.year <= 1990":          true,
		"params.dry == true":               true,
		"'a' < 'b'":                        true,
		"params.day == date('2026-01-31')": true,
		"params.day + 1":                   day(2026, 2, 1),
		"params.day - 31":                  day(2025, 12, 31),
		"params.day - date('2026-01-01')":  int64(30),
		"date('31.01.2026', 'dd.MM.yyyy') == params.day":     true,
		"date(params.at) == params.day":                      true,
		"params.at > timestamp('2026-01-31T00:00:00+02:00')": true,
		"params.at - timestamp(params.day)":                  23*time.Hour + 30*time.Minute,
		"params.at + duration('1h')":                         time.Date(2026, 2, 1, 0, 30, 0, 0, time.UTC),
		"params.at - params.wait":                            time.Date(2026, 1, 31, 23, 28, 30, 0, time.UTC),
		"params.wait + duration('30s') == duration('2m')":    true,
		"params.wait":      90 * time.Second,
		"-params.wait":     -90 * time.Second,
		"year(params.day)": int64(2026), "month(params.at)": int64(1), "day(params.day)": int64(31),
		"format(params.day, 'yyyyMMdd')":                                 "20260131",
		"format(params.at, \"yyyy-MM-dd'T'HH:mm\")":                      "2026-01-31T23:30",
		"timestamp('2026-01-31 23:30', 'yyyy-MM-dd HH:mm') == params.at": true,
		"lower(params.name)":                                             "größe", "upper('ä')": "Ä", "trim(' a\t')": "a",
		"params.name | lower() | len()": int64(5),
		"len(params.name)":              int64(5),
		"substr(params.name, 2, 2)":     "öß", "substr('abc', 2, 9)": "c", "substr('abc', 5, 1)": "",
		"replace('a-b-c', '-', '')": "abc",
		"round(2.5)":                3.0, "round(-2.5)": -3.0, "round(1.005, 2)": 1.01, "round(-1.005, 2)": -1.01,
		"round(9.999, 2)": 10.0, "round(3)": int64(3), "round(0.1 + 0.2, 2)": 0.3, "round(1e300, 2)": 1e300,
		"floor(-1.5)": -2.0, "ceil(1.2)": 2.0, "floor(3)": int64(3),
		"abs(-3)": int64(3), "abs(-0.5)": 0.5,
		"min(3, 1, 2)": int64(1), "max(3, 1.5)": 3.0, "max('a', 'b')": "b",
		"max(params.day, date('2026-02-01'))": day(2026, 2, 1),
		"int('42')":                           int64(42), "int(-1.9)": int64(-1), "int(' 7 ')": int64(7), "float('1e3')": 1000.0, "float(2)": 2.0,
		"string(1)": "1", "string(1.5)": "1.5", "string(true)": "true", "string(params.day)": "2026-01-31",
		"string(params.at)": "2026-01-31T23:30:00Z", "string(params.wait)": "1m30s",
		"params.name contains 'öß'": true, "params.name startsWith 'Gr'": true, "params.name endsWith 'x'": false,
		"params.name not contains 'a'":    true,
		"params.name matches '^G.+e$'":    true,
		"params.name matches params.name": true,
		"params.year in [1, 1990]":        true, "params.year not in [1, 2]": true, "params.year in [1990.0]": true,
		"params.year in 1989..1991": true, "params.name in ['a', params.name]": true, "0.0 in [-0.0]": true,
		"params.year in []":    false,
		"params.dry ? 1 : 2.5": 1.0,
		"params.limit ?? 7":    int64(7), "params.limit ?? params.rate": 0.5,
		"params.note": nil,
		"if params.dry { 'yes' } else if params.year > 0 { 'no' } else { 'never' }": "yes",
		"let a = params.year; let b = a * 2; b - a":                                 int64(1990),
		"params['name']":              "Größe",
		"params?.name":                "Größe",
		"env.HOME":                    "/root",
		"job.name startsWith 'night'": true,
		"not params.dry or !false":    true,
	} {
		p, err := expression.Compile(text, scope())
		require.NoError(t, err, text)
		got, err := p.Eval(vars())
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		if want != nil {
			require.Equal(t, reflect.TypeOf(want), p.Type(), text)
		}
	}
}

func TestAFailingEvaluationNamesExpressionAndPlace(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]string{
		"params.year / (params.year - 1990)":          "expression `params.year / (params.year - 1990)`, character 13: division by zero",
		"'ß' + string(params.year % 0)":               "character 26: division by zero",
		"div(params.year, 0)":                         "character 1: division by zero",
		"params.year * 9223372036854775807":           "does not fit an int",
		"-9223372036854775807 - params.year":          "does not fit an int",
		"abs(6 - 9223372036854775807 - params.small)": "abs(-9223372036854775808) does not fit an int",
		"10.0 ** (params.year)":                       "not a finite number",
		"int(params.name)":                            `"Größe" is not an int`,
		"float(params.name)":                          `"Größe" is not a float`,
		"float('Inf' + substr(params.name, 0, 0))":    "is not a float",
		"int(params.rate * 1e300)":                    "does not fit an int",
		"date(params.name)":                           "is not a date (yyyy-MM-dd)",
		"timestamp(params.name)":                      "is not a timestamp",
		"date(params.name, 'dd.MM.yyyy')":             "is not a date (dd.MM.yyyy)",
		"duration(params.name)":                       "is not a duration",
		"params.day + 9223372036854775807":            "outside the years 1 to 9999",
		"params.day - params.year * 1000000":          "outside the years 1 to 9999",
		"substr(params.name, -params.year, 1)":        "neither may be negative",
		"round(params.rate, params.year)":             "0 to 15 are allowed",
		"params.name matches ('[' + params.name)":     "missing closing ]",
		"format(params.day, params.name)":             "unknown",
		"env.MISSING":                                 "env.MISSING has no value",
	} {
		p, err := expression.Compile(text, scope())
		require.NoError(t, err, text)
		_, err = p.Eval(vars())
		var failed *expression.EvalError
		require.ErrorAs(t, err, &failed, text)
		require.Equal(t, text, failed.Text)
		require.Contains(t, err.Error(), message)
	}
}

func TestAWrongValueIsRefusedWhenEvaluated(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("params.year + 1", scope())
	require.NoError(t, err)
	for _, wrong := range []any{"1990", 1990.0, nil, true, time.Second} {
		_, err := p.Eval(map[string]any{"params": map[string]any{"year": wrong}})
		require.ErrorContains(t, err, "params.year", "%T", wrong)
	}
	_, err = p.Eval(map[string]any{"params": 1})
	require.ErrorContains(t, err, "not a namespace")
	v, err := p.Eval(map[string]any{"params": map[string]any{"year": 1990}})
	require.NoError(t, err)
	require.Equal(t, int64(1991), v)
}

func TestTodayIsThereOnlyWhereTheScopeHasIt(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("today() - 1", expression.Scope{expression.Today: of[row.Date]()})
	require.NoError(t, err)
	require.Equal(t, []string{}, p.Vars())
	v, err := p.Eval(map[string]any{expression.Today: row.NewDate(2026, 3, 1)})
	require.NoError(t, err)
	require.Equal(t, row.NewDate(2026, 2, 28), v)
	_, err = p.Eval(nil)
	require.ErrorContains(t, err, "has no value")
}

func TestAStructuredValueIsPassedOnWhole(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("params.tags", scope())
	require.NoError(t, err)
	require.Equal(t, reflect.TypeFor[map[string]string](), p.Type())
	v, err := p.Eval(vars())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, v)
}

func TestVarsAreThePathsUsed(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("params.year > 1 and (env.HOME == params['name'] or params.year < 0)", scope())
	require.NoError(t, err)
	require.Equal(t, []string{"env.HOME", "params.name", "params.year"}, p.Vars())
}

func TestEveryFunctionIsInTheList(t *testing.T) {
	t.Parallel()
	list := expression.Functions()
	require.Greater(t, len(list), 20)
	for _, usage := range list {
		name, _, _ := strings.Cut(usage, "(")
		_, err := expression.Compile(name+"()", nil)
		var at *expression.Error
		require.True(t, errors.As(err, &at), usage)
		require.NotContains(t, at.Msg, "unknown function", usage)
	}
}

func TestANameOfAnOpenNamespaceMayBeMissingWhereItIsNullable(t *testing.T) {
	t.Parallel()
	open := expression.Scope{"context": {Open: true, Nullable: true}, "env": {Open: true}}
	_, err := expression.Compile("context.rows == '3'", open)
	require.ErrorContains(t, err, "context.rows may be null")
	program, err := expression.Compile("int(context.rows ?? '0')", open)
	require.NoError(t, err)
	for want, given := range map[int64]map[string]any{0: {}, 12: {"rows": "12"}} {
		got, err := program.Eval(map[string]any{"context": given})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	program, err = expression.Compile("env.HOME", open)
	require.NoError(t, err)
	require.False(t, program.Nullable())
}
