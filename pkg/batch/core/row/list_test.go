package row_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func list(t require.TestingT, slice any) row.Value {
	v, err := row.ValueOf(slice)
	require.NoError(t, err)
	return v
}

// Rule D13.
func TestTextsOfListsAreReadInTheirForms(t *testing.T) {
	t.Parallel()
	two := 2
	ints, texts := row.ListOf(row.Int), row.ListOf(row.String)
	for _, c := range []struct {
		f    row.Field
		text string
		want string // its JSON
	}{
		{row.Field{Kind: ints}, " [ 1, -2 ] ", "[1,-2]"},
		{row.Field{Kind: ints}, "[]", "[]"},
		{row.Field{Kind: ints}, "{1,2}", "[1,2]"},
		{row.Field{Kind: ints}, "[0:1]={1,NULL}", "[1,null]"},
		{row.Field{Kind: ints}, "[null, 1,null]", "[null,1,null]"},
		{row.Field{Kind: ints}, "{}", "[]"},
		{row.Field{Kind: ints, Separator: ";"}, "1; 2", "[1,2]"},
		{row.Field{Kind: ints, Separator: ";"}, "[1,2]", "[1,2]"},
		{row.Field{Kind: ints, Coerce: row.CoerceConvert}, `["1",2.0]`, "[1,2]"},
		{row.Field{Kind: texts}, `["a,b","\"é"]`, `["a,b","\"é"]`},
		{row.Field{Kind: texts}, `{a,"b,\"c\\","null",null}`, `["a","b,\"c\\","null",null]`},
		{row.Field{Kind: texts, Separator: "|"}, "[a|b]", `["[a","b]"]`},
		{row.Field{Kind: row.ListOf(row.DecimalKind), Scale: &two, Separator: " ", DecimalSeparator: ","}, "1,5 2", "[1.50,2.00]"},
		{row.Field{Kind: row.ListOf(row.Bool)}, "{t,f,true}", "[true,false,true]"},
		{row.Field{Kind: row.ListOf(row.DateKind), Format: "dd.MM.yyyy", Separator: ","}, "24.12.2026", `["2026-12-24"]`},
		{row.Field{Kind: row.ListOf(row.Timestamp)}, `{"2026-01-02 03:04:05+00"}`, `["2026-01-02T03:04:05Z"]`},
		{row.Field{Kind: row.ListOf(row.UUIDKind)}, `["{C0FFEE00-0000-4000-8000-00000000000A}"]`, `["` + anID + `"]`},
	} {
		got, err := field(t, c.f).Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got.String(), c.text)
	}
	got, err := field(t, row.Field{Kind: ints, Nullable: true}).Parse("")
	require.NoError(t, err)
	require.True(t, got.IsNull())
	require.Equal(t, "{x: list of int}", mustSchema(t, row.Field{Name: "x", Kind: ints}).String())
}

func mustSchema(t *testing.T, f row.Field) *row.Schema {
	t.Helper()
	s, err := row.NewSchema(f)
	require.NoError(t, err)
	return s
}

func TestTextsThatAreNoListsAreInvalidItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f          row.Field
		text, want string
	}{
		{row.Field{Kind: row.ListOf(row.Int)}, "1;2", `for a;b set separator: ";"`},
		{row.Field{Kind: row.ListOf(row.Int)}, `[1,"2"]`, `field x[1]: "2" is not an int (it is a text; coerce: convert accepts it)`},
		{row.Field{Kind: row.ListOf(row.Int)}, `[1,2,3,{"a":1}]`, "field x[3]: {\"a\":1} is not an int (a list has simple values"},
		{row.Field{Kind: row.ListOf(row.Int)}, `[[1]]`, "field x[0]: [1] is not an int (lists of lists are not supported: use type json)"},
		{row.Field{Kind: row.ListOf(row.Int)}, `{{1},{2}}`, "to_jsonb(x)"},
		{row.Field{Kind: row.ListOf(row.Int)}, `{1,,2}`, "before a comma"},
		{row.Field{Kind: row.ListOf(row.Float)}, `{1,NaN}`, "field x[1]: "},
		{row.Field{Kind: row.ListOf(row.String), Hidden: true}, `["secret",7]`, "field x[1]: the value is not"},
		{row.Field{Kind: row.ListOf(row.Int)}, `{1,}`, "after the last comma"},
		{row.Field{Kind: row.ListOf(row.String)}, `{"a}`, "a quote is not closed"},
		{row.Field{Kind: row.ListOf(row.String)}, `[1]`, "field x[0]: 1 is not a string"},
		{row.Field{Kind: row.ListOf(row.Int), Separator: ";"}, "1;x", `field x[1]: "x" is not an int`},
	} {
		_, err := field(t, c.f).Parse(c.text)
		require.ErrorContains(t, err, c.want, c.text)
		require.True(t, exception.IsSkippable(err))
		require.NotContains(t, err.Error(), "secret")
	}
	for _, f := range []row.Field{{Name: "x", Kind: row.Int, Separator: ";"}, {Name: "x", Kind: row.ListOf(row.JSONKind)}, {Name: "x", Kind: row.ListOf(row.Int), Format: "yyyy"}, {Name: "x", Kind: row.ListOf(row.DecimalKind), Separator: ",", DecimalSeparator: ","}} {
		_, err := row.NewSchema(f)
		require.Error(t, err)
	}
}

func TestListsComeBackFromEachOfTheirTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slice := rapid.OneOf(
			rapid.Map(rapid.SliceOf(rapid.Ptr(rapid.String(), true)), func(s []*string) any { return s }),
			rapid.Map(rapid.SliceOf(rapid.StringOf(rapid.RuneFrom([]rune("ab;,\"\\{}[] é\n")))), func(s []string) any { return s }),
			rapid.Map(rapid.SliceOf(rapid.Int64()), func(s []int64) any { return s }),
			rapid.Map(rapid.SliceOf(rapid.Float64Range(-1e9, 1e9)), func(s []float64) any { return s }),
			rapid.Map(rapid.SliceOf(rapid.Bool()), func(s []bool) any { return s }),
		).Draw(t, "slice")
		v := list(t, slice)
		if pointers, ok := slice.([]*string); !ok || slices.Contains(pointers, nil) {
			require.Equal(t, slice, v.Any())
		}
		elements := v.Elements()
		require.Equal(t, v.Len(), len(elements))
		for i, e := range elements {
			require.Equal(t, e, v.Element(int64(i)))
			require.Equal(t, e, v.Element(int64(i-len(elements))))
		}
		require.True(t, v.Element(int64(len(elements))).IsNull())
		require.True(t, v.Element(int64(-1-len(elements))).IsNull())
		require.True(t, json.Valid([]byte(v.String())))
		for _, separator := range []string{"", ";"} {
			s, err := row.NewSchema(row.Field{Name: "x", Kind: v.Kind(), Separator: separator})
			require.NoError(t, err)
			for _, text := range []string{string(s.Field(0).AppendText(nil, v)), string(s.Field(0).AppendArray(nil, v))} {
				got, err := s.Field(0).Parse(text)
				require.NoError(t, err, text)
				require.Equal(t, v, got, text)
			}
		}
		got, err := (&row.Field{Name: "x", Kind: v.Kind()}).Parse(row.ArrayText(v, row.Value.String))
		require.NoError(t, err)
		require.Equal(t, v, got)
	})
	a := list(t, []row.Decimal{row.DecimalOf(1)})
	d, err := row.ParseDecimal("1.00")
	require.NoError(t, err)
	b := list(t, []row.Decimal{d})
	require.True(t, a.Equal(b))
	require.Zero(t, row.Compare(a, b))
	require.Equal(t, a.Canonical(), b.Canonical())
	require.True(t, strings.HasPrefix(a.Kind().String(), "list of "))
}

func TestWhatAListCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	for _, slice := range []any{[]float64{1, math.NaN()}, []string{"a", "\xff"}, []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, []row.Date{0, row.NewDate(-1, 1, 1)}} {
		_, err := row.ValueOf(slice)
		var of *row.ElementError
		require.ErrorAs(t, err, &of)
		require.Equal(t, 1, of.Index)
		require.ErrorContains(t, row.FieldError("tags", err), "field tags[1]: ")
	}
	_, err := row.ListValue(row.Int, []row.Value{row.StringValue("x")})
	require.ErrorContains(t, err, "a string in a list of int")
	v, err := row.ValueOf([]int64(nil))
	require.NoError(t, err)
	require.True(t, v.IsNull())
	require.Equal(t, "[]", list(t, []int64{}).String())
}

func TestAListThatDoesNotFitIsCoercedAsAWhole(t *testing.T) {
	t.Parallel()
	ints := row.ListOf(row.Int)
	f := field(t, row.Field{Kind: ints, Nullable: true, Coerce: row.CoerceNull})
	for text, want := range map[string]string{`["1",2.0]`: "[1,2]", `[1,"x"]`: "null", "1;2": "null"} {
		got, err := f.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, got.String(), text)
	}
	f = field(t, row.Field{Kind: ints, Default: list(t, []int64{}), Nulls: []string{"-"}})
	got, err := f.Parse("-")
	require.NoError(t, err)
	require.Equal(t, "[]", got.String())
}
