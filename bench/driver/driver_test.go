package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// After a contestant is renamed, its target would be "not measured" for ever.
func TestEveryTargetIsAboutContestantsThatThereAre(t *testing.T) {
	t.Parallel()
	names := map[string][]string{}
	for _, w := range workloads() {
		for _, c := range w.Contestants {
			require.NotContains(t, names[w.Name], c.Name(), w.Name)
			names[w.Name] = append(names[w.Name], c.Name())
		}
	}
	for _, target := range targets() {
		meant := 0
		for _, name := range names[target.workload] {
			if target.who(name) {
				meant++
			}
		}
		require.Positive(t, meant, "%s: %s", target.workload, target.text)
		if target.than != "" {
			require.Contains(t, names[target.workload], target.than, target.text)
		}
		require.Subset(t, names[target.workload], target.limits, target.text)
	}
}

func lasted(seconds ...float64) []run {
	var all []run
	for _, s := range seconds {
		all = append(all, run{Result: Result{Seconds: s}})
	}
	return all
}

func TestATargetIsJudgedRoundByRound(t *testing.T) {
	t.Parallel()
	w := Workload{Name: "w", Contestants: []Contestant{inside{name: "floor"}, inside{name: "surfin a"}, inside{name: "surfin b"}}}
	made := newTable(w, 10, 3)
	for i, runs := range [][]run{lasted(1, 2, 3), lasted(2, 2, 3), lasted(4, 4, 4)} {
		made.add(w.Contestants[i], nil)
		made.lines[i].runs = runs
	}
	ofOurs := func(name string) bool { return name != "floor" }
	for _, c := range []struct {
		target  target
		value   float64
		who     string
		reached bool
	}{
		{target{who: named("a"), than: "floor", faster: true, want: 0.9}, 1, "surfin a", true},
		{target{who: ofOurs, than: "floor", faster: true, want: 0.9}, 0.5, "surfin b", false},
		{target{who: ofOurs, than: "floor", want: 2}, 2, "surfin b", true},
		{target{who: ofOurs, want: 3}, 4, "surfin b", false},
	} {
		c.target.workload = "w"
		s := c.target.in([]*table{made})
		require.False(t, s.missing)
		require.InDelta(t, c.value, s.value.median, 1e-9)
		require.Equal(t, c.who, s.line.contestant.Name())
		require.Equal(t, c.reached, s.reaches(s.value))
	}
	require.True(t, target{workload: "w", who: named("c")}.in([]*table{made}).missing)
	require.True(t, target{workload: "w", who: named("a"), than: "gone"}.in([]*table{made}).missing)
}

func TestATargetThatTheLimitDoesNotReachSaysSo(t *testing.T) {
	t.Parallel()
	names := []string{"floor", "surfin a", "by hand", "slower by hand", "by hand, failed"}
	w := Workload{Name: "w"}
	for _, name := range names {
		w.Contestants = append(w.Contestants, inside{name: name})
	}
	made := newTable(w, 10, 3)
	for i, runs := range [][]run{lasted(1, 2, 3), lasted(4, 8, 4), lasted(2, 4, 3), lasted(5, 5, 6), nil} {
		made.add(w.Contestants[i], nil)
		made.lines[i].runs = runs
	}
	made.lines[4].failed = errors.New("it fails")
	for _, c := range []struct {
		target         target
		limits         []string
		verdict, limit string
	}{
		{faster("w", "a", "floor", 0.2), names[2:], "reached", "0.50 × (0.50 × to 1.00 ×): by hand"},
		{faster("w", "a", "floor", 0.5), names[2:], "not reached", "0.50 × (0.50 × to 1.00 ×): by hand"},
		{faster("w", "a", "floor", 0.6), names[2:], "not reached: the limit is 0.50 ×, and ours is 0.50 × that", "0.50 × (0.50 × to 1.00 ×): by hand"},
		{faster("w", "a", "floor", 0.6), names[4:], "not reached", "-"},
		{faster("w", "a", "floor", 0.6), []string{"not asked for"}, "not reached", "-"},
		{target{who: named("a"), than: "floor", want: 3, show: times}, names[2:], "not reached", "2.00 × (1.00 × to 2.00 ×): by hand"},
		{target{who: named("a"), than: "floor", want: 1, show: times}, names[2:], "not reached: the limit is 2.00 ×, and ours is 2.00 × that", "2.00 × (1.00 × to 2.00 ×): by hand"},
		{target{who: named("a"), want: 2, show: times}, names[3:4], "not reached: the limit is 5.00 ×, and ours is 0.80 × that", "5.00 × (5.00 × to 6.00 ×): slower by hand"},
	} {
		c.target.workload = "w"
		row := c.target.limitedBy(c.limits...).in([]*table{made}).row()
		require.Equal(t, []string{c.verdict, c.limit}, row[len(row)-2:])
	}
}

func TestWhatTargetsCompareHasMoreRounds(t *testing.T) {
	t.Parallel()
	names := []string{`psql \copy`, "surfin rows, 1000", "surfin structs, 1000"}
	w := Workload{Name: "w1"}
	for _, name := range names {
		w.Contestants = append(w.Contestants, inside{name: name})
	}
	made := newTable(w, 10, 1)
	for i, c := range w.Contestants {
		made.add(c, nil)
		copy(made.lines[i].runs, lasted(1, 2, 3))
	}
	require.Equal(t, []int{3, 3, 1}, []int{len(made.lines[0].runs), len(made.lines[1].runs), len(made.lines[2].runs)})
	require.InDelta(t, 1, made.ratio(made.lines[2]).median, 1e-9)
	require.Equal(t, 3, made.mostRounds())
}

func TestRowsThatAreLostAreListed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "14-15, 17-20", spans([]int64{14, 15, 17, 18, 19, 20}))
	require.Equal(t, "3", spans([]int64{3}))
	require.Empty(t, spans(nil))
}

func TestResultsGoBetweenTheMarkersOfAPage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+beginMark+"\nold\n"+endMark+"\nafter\n"), 0o600))
	require.NoError(t, replaceMarked(page, "new"))
	text, err := os.ReadFile(page) //nolint:gosec // of this test
	require.NoError(t, err)
	require.Equal(t, "before\n"+beginMark+"\nnew\n"+endMark+"\nafter\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("nothing"), 0o600))
	require.ErrorContains(t, replaceMarked(page, "new"), "has no lines")
}

func TestALoopByHandReadsEachRowOfAFormatOnce(t *testing.T) {
	t.Parallel()
	input := filepath.Join(t.TempDir(), "sales.csv")
	const rows = 101
	sum, err := writeSales(input, rows, 1)
	require.NoError(t, err)
	require.NoError(t, otherForms(input))
	for _, format := range []string{"csv", "jsonl", "fixed"} {
		for _, parts := range []int{1, 2, 3} {
			f, err := os.Open(formOf(input, format))
			require.NoError(t, err)
			sections, err := cut(f, parts, format == "csv")
			require.NoError(t, err)
			var seen summed
			for _, section := range sections {
				next := rowsOf(section, format)
				for fields, err := next(); !errors.Is(err, io.EOF); fields, err = next() {
					require.NoError(t, err)
					fmt.Fprintln(&seen, strings.Join(fields, ",")) //nolint:errcheck // it takes everything
				}
			}
			require.NoError(t, f.Close())
			require.NoError(t, seen.check(Work{Rows: rows, Sum: sum}), "%s in %d", format, parts)
		}
	}
}

func TestALoopByHandReadsAnyJSON(t *testing.T) {
	t.Parallel()
	want := []string{"1", "2", `a"b`, "c", "2020-01-01", "3.5"}
	for line, plain := range map[string]bool{
		`{"id": 1, "account": 2, "name": "a\"b", "city": "c", "day": "2020-01-01", "amount": 3.5}`: false,
		`{"city":"c","id":1,"account":2,"name":"ab","day":"2020-01-01","amount":3.5}`:              true,
		`{"id":1,"id":1,"account":2,"city":"c","day":"2020-01-01","amount":3.5}`:                   false,
	} {
		fields := make([]string, 6)
		require.Equal(t, plain, plainFields(fields, line), line)
		require.NoError(t, jsonFields(fields, line))
		require.Equal(t, want[0], fields[0])
		require.Equal(t, want[5], fields[5])
	}
	require.Error(t, jsonFields(make([]string, 6), `{"id": 1,`))
}

func TestTheTimeOfSlingIsThatOfItsRows(t *testing.T) {
	t.Parallel()
	r, err := sling{}.Result([]byte(`4:12PM INF inserted 100000 rows into "public"."sale" in 0 secs [200,000 r/s]`))
	require.NoError(t, err)
	require.InDelta(t, 0.5, r.Seconds, 1e-9)
	_, err = sling{}.Result([]byte("4:12PM INF execution succeeded"))
	require.Error(t, err)
}
