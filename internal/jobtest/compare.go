package jobtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/testfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (s *stand) compare(ctx context.Context) (differences []string, err error) {
	want := &s.test.Expect
	add := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	if got := string(s.exec.Status); got != want.Status {
		text := ""
		if s.exec.Error != "" {
			text = ": " + s.exec.Error
		}
		add("status: expected %s, got %s%s", want.Status, got, text)
	}
	if want.Exit != "" && s.exec.ExitCode != want.Exit {
		add("exit: expected %s, got %s", want.Exit, s.exec.ExitCode)
	}
	if !strings.Contains(s.exec.Error, want.Error) {
		add("error: expected %q in it, got %q", want.Error, s.exec.Error)
	}
	view, err := s.Service.Show(ctx, operator.ShowRequest{Execution: s.exec.ID})
	if err != nil {
		return differences, err
	}
	for _, name := range slices.Sorted(maps.Keys(want.Steps)) {
		differences = append(differences, stepDifferences(view, name, want.Steps[name])...)
	}
	differences = append(differences, databaseDifferences(ctx, s.dbs[tx.Default], s.zone, "", want.Tables, want.Queries)...)
	for _, name := range slices.Sorted(maps.Keys(want.In)) {
		differences = append(differences, databaseDifferences(ctx, s.dbs[name], s.zone, " in "+name, want.In[name].Tables, want.In[name].Queries)...)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Files)) {
		differences = append(differences, s.fileDifferences(name, want.Files[name])...)
	}
	if want.Skips != nil {
		list, err := s.skipDifferences(ctx, *want.Skips)
		if err != nil {
			return differences, err
		}
		differences = append(differences, list...)
	}
	return differences, nil
}

func databaseDifferences(ctx context.Context, db tx.Database, zone *time.Location, in string, tables, queries map[string]testfile.Rows) (differences []string) {
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		columns := columnsOf(tables[name])
		list := "*"
		if len(columns) > 0 {
			var names []string
			for _, c := range columns {
				names = append(names, db.Dialect().Quote(c))
			}
			list = strings.Join(names, ", ")
		}
		differences = append(differences, rowDifferences(ctx, db, zone, "table "+name+in, "select "+list+" from "+name, tables[name])...)
	}
	for _, query := range slices.Sorted(maps.Keys(queries)) {
		differences = append(differences, rowDifferences(ctx, db, zone, "query "+query+in, query, queries[query])...)
	}
	return differences
}

func stepDifferences(view *operator.ExecutionView, name string, want testfile.Counts) (list []string) {
	i := slices.IndexFunc(view.Steps, func(s operator.StepView) bool { return s.Step == name })
	if i < 0 {
		return []string{fmt.Sprintf("step %s: it did not run", name)}
	}
	got := view.Steps[i]
	if want.Status != "" && string(got.Status) != want.Status {
		list = append(list, fmt.Sprintf("step %s: expected %s, got %s", name, want.Status, got.Status))
	}
	for _, c := range []struct {
		name string
		want *int64
		got  int64
	}{{"read", want.Read, got.Read}, {"written", want.Written, got.Written}, {"filtered", want.Filtered, got.Filtered}, {"skipped", want.Skipped, got.Skipped}} {
		if c.want != nil && *c.want != c.got {
			list = append(list, fmt.Sprintf("step %s: expected %s %d, got %d", name, c.name, *c.want, c.got))
		}
	}
	return list
}

func rowDifferences(ctx context.Context, db tx.Database, zone *time.Location, title, text string, want testfile.Rows) []string {
	columns, clocks, got, err := queryRows(ctx, db, text, zone)
	if err != nil {
		return []string{title + ": " + err.Error()}
	}
	named := columns
	if len(want.List) > 0 {
		named = columnsOf(want)
	}
	var places []int
	for _, name := range named {
		i := slices.Index(columns, name)
		if i < 0 {
			return []string{fmt.Sprintf("%s: it has no column %s (columns: %s)", title, name, strings.Join(columns, ", "))}
		}
		places = append(places, i)
	}
	var texts [][]string
	for _, r := range got {
		values := make([]string, len(places))
		for i, p := range places {
			values[i] = r[p]
		}
		texts = append(texts, values)
	}
	var expected [][]string
	for _, r := range want.List {
		values := valuesOf(named, r, nullText)
		for i, p := range places {
			values[i] = clocks[p].text(values[i])
		}
		expected = append(expected, values)
	}
	return difference(title, named, expected, texts, false)
}

func (s *stand) fileDifferences(name string, want testfile.Content) []string {
	path, err := s.path(name)
	if err != nil {
		return []string{err.Error()}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{fmt.Sprintf("file %s: it does not exist", name)}
	}
	if !want.IsRows {
		return difference("file "+name, nil, lines(want.Text), lines(string(text)), true)
	}
	columns := columnsOf(want.Rows)
	got, err := fileRows(name, string(text), columns)
	if err != nil {
		return []string{fmt.Sprintf("file %s: %v", name, err)}
	}
	null := nullText
	if strings.HasSuffix(name, ".csv") {
		null = ""
	}
	var expected [][]string
	for _, r := range want.Rows.List {
		expected = append(expected, valuesOf(columns, r, null))
	}
	return difference("file "+name, columns, expected, got, true)
}

func lines(text string) (list [][]string) {
	for line := range strings.Lines(text) {
		list = append(list, []string{strings.TrimRight(line, "\r\n")})
	}
	return list
}

const skipsPage = 1000

func (s *stand) skipDifferences(ctx context.Context, want []testfile.Skip) (list []string, err error) {
	page, err := s.Service.Skips(ctx, operator.SkipsRequest{Execution: s.exec.ID, Limit: skipsPage})
	if err != nil {
		return nil, err
	}
	left := page.Items
	for _, w := range want {
		i := slices.IndexFunc(left, func(g operator.SkipView) bool { return skipFits(w, g) })
		if i < 0 {
			list = append(list, fmt.Sprintf("  - %+v", w))
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, g := range left {
		list = append(list, fmt.Sprintf("  + step %s, %s: %s", g.Step, g.Phase, g.Error))
	}
	if len(list) == 0 {
		return nil, nil
	}
	return []string{"skips (- expected, + got):\n" + strings.Join(list, "\n")}, nil
}

func skipFits(w testfile.Skip, g operator.SkipView) bool {
	return (w.Step == "" || w.Step == g.Step) && (w.Phase == "" || w.Phase == string(g.Phase)) &&
		(w.File == "" || w.File == filepath.Base(g.Path)) && (w.Line == 0 || w.Line == g.Line) &&
		(w.Index == 0 || w.Index == g.Index) && (w.Row == 0 || w.Row == g.Row) && strings.Contains(g.Error, w.Error)
}

const shownRows = 20

func difference(title string, columns []string, want, got [][]string, ordered bool) []string {
	missing, extra := slices.Clone(want), [][]string{}
	for _, g := range got {
		if i := slices.IndexFunc(missing, func(w []string) bool { return slices.EqualFunc(w, g, same) }); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		} else {
			extra = append(extra, g)
		}
	}
	if len(missing)+len(extra) == 0 {
		if ordered && !slices.EqualFunc(want, got, func(w, g []string) bool { return slices.EqualFunc(w, g, same) }) {
			return []string{title + ": the same rows, in another order"}
		}
		return nil
	}
	text := fmt.Sprintf("%s (- expected, + got):", title)
	if len(columns) > 0 {
		text += "\n    " + strings.Join(columns, " | ")
	}
	for _, side := range []struct {
		sign string
		rows [][]string
	}{{"-", missing}, {"+", extra}} {
		for i, r := range side.rows {
			if i == shownRows {
				text += fmt.Sprintf("\n  %s ... and %d more", side.sign, len(side.rows)-i)
				break
			}
			text += "\n  " + side.sign + " " + strings.Join(r, " | ")
		}
	}
	return []string{text}
}

// same reports whether both texts are the same value: 4.50 is 4.5.
func same(want, got string) bool {
	if want == got {
		return true
	}
	a, errA := strconv.ParseFloat(want, 64)
	b, errB := strconv.ParseFloat(got, 64)
	if errA == nil && errB == nil {
		return a == b && len(want) < 16 && len(got) < 16 // with more digits than a float has they are compared as texts
	}
	return errA != nil && (want == "true" && got == "1" || want == "false" && got == "0")
}
