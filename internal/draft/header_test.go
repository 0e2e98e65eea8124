package draft_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// A first record with values of its columns' types may be data: a draft that
// used it for names would lose a row.
func TestAHeaderThatMayBeDataIsNotTakenSilently(t *testing.T) {
	t.Parallel()
	for text, value := range map[string]string{
		"john,5,2024-01-01\nmary,6,2024-01-02\n": `"5" is of type int`, "a,2024-01-01\nb,2024-01-02\n": `"2024-01-01" is of type date`, "x;y;1,5\ny;z;2,25\n": `"1,5" is of type decimal`,
		"country,2019,2020\nCH,1,2\n": `"2019" is of type int`,
	} {
		s := inferred(t, "in.csv", text)
		require.Contains(t, strings.Join(s.Notes, "\n"), value)
		_, err := s.Copy(draft.Target{Table: "t"}, draft.Sides{})
		require.ErrorContains(t, err, "--no-header reads it as data, --header as names")
		_, err = s.Start("in.csv", 1)
		require.ErrorContains(t, err, value)

		for _, o := range []draft.Options{{NoHeader: true}, {Header: true}} {
			s = inferredWith(t, "in.csv", text, o)
			require.Empty(t, s.Notes)
			_, err = s.Copy(draft.Target{Table: "t"}, draft.Sides{})
			require.NoError(t, err)
		}
	}
	for _, text := range []string{"a,b\n1,2\n", "1,2\nx,y\n", "id,day\n", "true,x\nyes,1\n"} {
		require.NotContains(t, strings.Join(inferred(t, "in.csv", text).Notes, "\n"), "may be data", text)
	}
}

// Rule D7.
func TestNaNIsNoNull(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"1.5 NaN 2.0", "1 nan 2", "1.5 inf 2.5", "1.5 -Infinity", "NaN 1", "NaN"} {
		spec, note := typeOf(t, strings.Fields(values)...)
		require.Equal(t, "string", spec, values)
		if !strings.HasPrefix(values, "NaN") {
			require.Contains(t, note, "not ", values)
		}
	}
}

func TestADamagedFileWithoutRowsIsNamed(t *testing.T) {
	t.Parallel()
	_, err := inferring(t, "in.jsonl", "{\"id\":1\n", draft.Options{})
	require.ErrorContains(t, err, "in.jsonl:1")
	_, err = inferring(t, "in.jsonl", "\n[1]\n7\n", draft.Options{})
	require.ErrorContains(t, err, "not a JSON object: [1]")
	_, err = inferring(t, "in.json", `[{"id":1,}]`, draft.Options{})
	require.ErrorContains(t, err, "in.json")
}

func TestColumnsWithoutANameOfTheirOwnAreReadByPlace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		for i, c := range []struct {
			text, columns string
			want          []string
		}{
			{"a,,c\n1,2,3\n4,5,6\n", "a, f_, c", []string{"1|2|3", "4|5|6"}},
			{",a\n1,x\n2,y\n", "f_, a", []string{"1|x", "2|y"}},
			{"a,b,a\n1,2,3\n", "a, b, a_2", []string{"1|2|3"}},
			{"\n\na,b,a\n1,2,3\n", "a, b, a_2", []string{"1|2|3"}},
			{"sep=;\na;;c\n1;2;3\n", "a, f_, c", []string{"1|2|3"}},
			{"\xEF\xBB\xBFa;;c\r\n1;2;3\r\n", "a, f_, c", []string{"1|2|3"}},
			{"a,,c\r1,2,3\r4,5,6\r", "a, f_, c", []string{"1|2|3", "4|5|6"}},
			{"a||b||c\n1||2||x|y\n", "a, b, c", []string{"1|2|x|y"}},
			{"a|||c\n1|||3\n", "a, f_, f__2, c", []string{"1|NULL|NULL|3"}},
		} {
			table := fmt.Sprintf("t%d", i)
			path := e.File(table+".csv", c.text)
			s, err := draft.Infer(t.Context(), path, draft.Options{})
			require.NoError(t, err)
			copying(t, e, s, draft.Target{Table: table}, table)
			e.HasRows("select "+c.columns+" from "+table+" order by 1", c.want...)
		}
	})
	_, err := inferring(t, "in.csv", "a,,\"c\nd\"\n1,2,3\n", draft.Options{})
	require.ErrorContains(t, err, "--skip-lines N and --no-header")
}
