package expression_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var written = regexp.MustCompile(`'[^'\n]*'|"([^"\n]+)"|\$\{([^}\n]+)\}|(?:filter|when|expect|validate|[a-z_]+): ([^,{}\n"]+)`)

func seeds(f *testing.F) (texts []string) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "jobs", "*.yaml"))
	require.NoError(f, err)
	more, err := filepath.Glob(filepath.Join("..", "..", "jobs", "cookbook", "*.yaml"))
	require.NoError(f, err)
	for _, path := range append(append(paths, more...), filepath.Join("..", "..", "docs", "jobfile.md")) {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		for _, found := range written.FindAllStringSubmatch(string(text), -1) {
			for _, part := range found[1:] {
				if len(part) > 3 {
					texts = append(texts, part)
				}
			}
		}
	}
	return append(texts,
		"item.n + 1 > 3 and item.s != nil ? item.s ?? 'x' : lower(string(item.x))", "-item.n ** 2 % 3", "not (item.b) or item.n in [1, 2, 3]", "item.n in 1..5",
		"let a = item.n; let b = a * 2; a + b", "if item.b { 1 } else { 2 }", "item.d + 3 - item.d", "item.t - duration('1h')", "item.m * 1.19 + 0.005", "round(item.m, 2, 'half_even')",
		"divide(item.m, 3.0, 4)", "div(item.n, 0)", "9223372036854775807 + item.n", "-9223372036854775808 / -1", "abs(-9223372036854775808)", "item.n // comment", "item.n /* comment */",
		"item['n']", "item?.n", "item.s matches '^[a-z]+$'", "regexp_extract(item.s ?? '', '(a)(b)', 2)", "substr(item.s ?? '', -1, 9223372036854775807)", "pad_left('x', 1000000000, ' ')",
		"split_part('a;b', ';', -9)", "json_get('{\"a\":[1,{\"b\":null}]}', 'a[1].b')", "hash('x', 'crc32')", "try(int('x'), 0)", "add_months(item.d, 1000000)", "truncate(item.t, 'week')",
		"date('2026-02-30')", "timestamp('2026-10-25 02:30', 'yyyy-MM-dd HH:mm', 'Europe/Berlin')", "format(item.t, 'yyyy', 'Mars')", "decimal('1e400')", "decimal(item.n) / 3", "float(item.m)", "1e308 * 10",
		"business_day(item.d, 9, 'TARGET')", "string(item.x) + \"\\u0000\\x41\"", "`raw`", "0x1F + 0b11 + 0o7 + 1_000", "1.5e-3", "((((((1))))))", "a?.b?.c", "#", "item | len", "{a: 1}", "[1, 'a'][0]", "max(item.n, nil)",
	)
}

func fuzzedRow(t require.TestingT) (item.Type, row.Row) {
	field := func(name string, kind row.Kind) row.Field {
		return row.Field{Name: name, Kind: kind, Nullable: name == "s"}
	}
	s, err := row.NewSchema(
		field("n", row.Int), field("x", row.Float), field("s", row.String), field("b", row.Bool), field("d", row.DateKind), field("t", row.Timestamp), field("m", row.DecimalKind),
	)
	require.NoError(t, err)
	amount, err := row.ParseDecimal("12.50")
	require.NoError(t, err)
	at := vars()["params"].(map[string]any)
	return item.RowOf("", s), row.New(s, []row.Value{
		row.IntValue(7), row.FloatValue(0.5), {}, row.BoolValue(true), row.DateValue(at["day"].(row.Date)), row.TimestampValue(at["at"].(time.Time)), row.DecimalValue(amount),
	})
}

// Any text is a program, or has an error within it. A program has a value of
// its type, the same each time and in brackets, or an error within the text.
func FuzzExpression(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 {
			return
		}
		of, one := fuzzedRow(t)
		if p, err := expression.CompileItem(registry.Expression{Text: text}, of); err != nil {
			within(t, text, err)
		} else {
			soundOverItems(t, p, one)
		}
		p, err := expression.Compile(text, scope())
		if err != nil {
			within(t, text, err)
			return
		}
		require.NoError(t, expression.CheckSyntax(text))
		value, err := p.Eval(vars())
		failedWithin(t, text, err)
		switch {
		case err != nil:
		case value == nil:
			require.True(t, p.Nullable() || p.Type() == nil, "%q is nil, and said that it cannot be", text)
		default:
			require.Equal(t, p.Type(), reflect.TypeOf(value), text)
		}
		again, err2 := p.Eval(vars())
		require.Equal(t, value, again, text)
		require.Equal(t, err, err2, text)
		tried, known, err2 := p.Try(vars(), func(string) bool { return false })
		require.Equal(t, err, err2, text)
		if err == nil {
			require.True(t, known, text)
			require.Equal(t, value, tried, text)
		}
		tried, known, err2 = p.Try(vars(), func(string) bool { return true })
		if known && err2 == nil {
			require.NoError(t, err, "%q is known to be %v without its names", text, tried)
			require.Equal(t, value, tried, text)
		}
		if bracketed, err3 := expression.Compile("(\n"+text+"\n)", scope()); err3 == nil && err == nil {
			again, err2 = bracketed.Eval(vars())
			require.NoError(t, err2, text)
			require.Equal(t, value, again, "in brackets: %q", text)
		}
	})
}

func within(t *testing.T, text string, err error) {
	t.Helper()
	var at *expression.Error
	require.ErrorAs(t, err, &at, text)
	require.NotEmpty(t, at.Msg, text)
	require.True(t, at.Offset >= 0 && at.Offset <= len(text), "%q: the error %q is at %d", text, at.Msg, at.Offset)
}

func failedWithin(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var at *expression.EvalError
	require.ErrorAs(t, err, &at, text)
	require.NotEmpty(t, at.Msg, text)
	require.True(t, at.Offset >= 0 && at.Offset <= len(text), "%q: the error %q is at %d", text, at.Msg, at.Offset)
}

func soundOverItems(t *testing.T, p *expression.ItemProgram, one row.Row) {
	t.Helper()
	frame, err := expression.NewFrame(&item.Cell[item.Row]{Item: one})
	require.NoError(t, err)
	value, err := p.Eval(frame)
	switch {
	case err != nil:
		require.NotEmpty(t, err.Error())
	case value.IsNull():
		require.True(t, p.Nullable() || p.Kind() == row.Null, "%q is null, and said that it cannot be", p.Text())
	default:
		require.Equal(t, p.Kind(), value.Kind(), p.Text())
		require.NoError(t, value.Finite(), p.Text())
	}
}
