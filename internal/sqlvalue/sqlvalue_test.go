//test:plain

package sqlvalue_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestEveryDayOfTenThousandYearsHasTheTextThatTimeGivesIt(t *testing.T) {
	t.Parallel()
	first, last := row.NewDate(1, 1, 1), row.NewDate(9999, 12, 31)
	var got, want []byte
	for d := first; d <= last; d++ {
		v := row.DateValue(d)
		require.NoError(t, sqlvalue.Check(v))
		got, want = sqlvalue.AppendText(got[:0], v), d.Time().AppendFormat(want[:0], time.DateOnly)
		if string(got) != string(want) {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	require.Error(t, sqlvalue.Check(row.DateValue(first-1)))
	require.Error(t, sqlvalue.Check(row.DateValue(last+1)))
}

func TestAnInfinityIsNamedWithACure(t *testing.T) {
	t.Parallel()
	err := sqlvalue.Unheld(&row.Field{Name: "a", Kind: row.Float}, sqlvalue.Check(row.FloatValue(math.Inf(-1))))
	require.EqualError(t, err, "field a: -Inf is not a finite number: change it in the SQL, or exclude its row with a `where`")
}

func TestTheTextOfATimestampIsReadBackAndSortsInTime(t *testing.T) {
	t.Parallel()
	lowest, highest := row.NewDate(1, 1, 1).Time().UnixMicro(), row.NewDate(9999, 12, 31).Time().UnixMicro()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(lowest, highest).Draw(t, "a"), rapid.Int64Range(lowest, highest).Draw(t, "b")
		text := func(micros int64) string {
			return sqlvalue.SQLite(row.TimestampValue(time.UnixMicro(micros))).(string)
		}
		read, err := time.Parse(time.RFC3339Nano, text(a))
		require.NoError(t, err)
		require.Equal(t, a, read.UnixMicro())
		require.Equal(t, a < b, text(a) < text(b))
	})
}

func TestWhatADatabaseDoesNotHoldIsRefused(t *testing.T) {
	t.Parallel()
	for _, v := range []row.Value{
		row.FloatValue(math.NaN()), row.FloatValue(math.Inf(1)), row.FloatValue(math.Inf(-1)),
		row.StringValue("a\x00b"), row.StringValue("\xff"),
		row.TimestampValue(time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC)), row.TimestampValue(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)),
	} {
		require.Error(t, sqlvalue.Check(v), v.String())
	}
}

func TestANULAndWhatIsNotUTF8IsFoundWhereverItIs(t *testing.T) {
	t.Parallel()
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				text := []byte(strings.Repeat("~", n))
				text[at] = byte(c)
				if ok := sqlvalue.CheckText(string(text)) == nil; ok != (c > 0 && c < 128) {
					t.Fatalf("%q: %t", text, ok)
				}
			}
		}
		require.NoError(t, sqlvalue.CheckText(strings.Repeat("é", n)))
	}
}

func TestBindVariablesTakeTheFormOfTheirDatabase(t *testing.T) {
	t.Parallel()
	args := []any{nil, "x", int64(7), 1.5, true, row.NewDate(2026, 11, 21), time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), 90 * time.Second}
	lite, err := sqlvalue.Args(args, sqlvalue.SQLite)
	require.NoError(t, err)
	require.Equal(t, []any{nil, "x", int64(7), 1.5, int64(1), "2026-11-21", "2026-01-02T03:04:05.000006Z", 90.0}, lite)
	pg, err := sqlvalue.Args(args, sqlvalue.Postgres)
	require.NoError(t, err)
	require.Equal(t, []any{nil, "x", "7", "1.5", "true", "2026-11-21", "2026-01-02T03:04:05.000006Z", "90"}, pg)
	_, err = sqlvalue.Args([]any{map[string]int{}}, sqlvalue.Postgres)
	require.ErrorContains(t, err, "bind variable 1")
}

// Rule C12a.
func TestAMisfitOfAHiddenFieldQuotesNothing(t *testing.T) {
	t.Parallel()
	f := row.Field{Name: "id", Kind: row.Bool}
	for _, value := range []any{"77", int64(77), 77.5, time.Unix(77, 0)} {
		f.Hidden = false
		_, err := sqlvalue.Fit(&f, value)
		require.NotContains(t, err.Error(), "the value is not")
		f.Hidden = true
		_, err = sqlvalue.Fit(&f, value)
		require.ErrorContains(t, err, "field id: the value is not")
		require.NotContains(t, err.Error(), "77")
	}
}

func TestTheScaleOfADeclaredDecimalIsFound(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]int{
		"decimal(12,2)": 2, "NUMERIC( 10 , 0 )": 0, "dec(5,3)": 3, "decimal": -1, "decimal(12)": -1, "varchar(12,2)": -1, "": -1, "float(8,2)": -1,
	} {
		scale, ok := sqlvalue.DeclaredScale(typ)
		require.Equal(t, want >= 0, ok, typ)
		require.Equal(t, max(want, 0), scale, typ)
	}
}
