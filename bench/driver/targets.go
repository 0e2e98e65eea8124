package main

import (
	"fmt"
	"strings"
)

// target is what one of our contestants is to reach.
type target struct {
	// text says what is compared.
	text, workload string
	// who reports whether a contestant is meant. Of several, the worst one counts.
	who func(name string) bool
	// than is the contestant that it is compared with; empty: the value itself counts.
	than string
	// of is what is compared; nil: the seconds of the work.
	of func(run) float64
	// faster asks for at least so many times the speed of than. Else it is at most want: so many times
	// than, or so much.
	faster bool
	want   float64
	show   func(value float64) string
}

func named(name string) func(string) bool {
	return func(n string) bool { return n == oursPrefix+" "+name }
}

func times(v float64) string { return fmt.Sprintf("%.2f ×", v) }

func megabytes(v float64) string { return fmt.Sprintf("%.0f MB", v/(1<<20)) }

func peakOfRun(r run) float64 { return float64(r.peak) }

// faster is a target for the speed of one of ours beside another contestant.
func faster(workload, who, than string, want float64) target {
	return target{text: who + ": of " + than, workload: workload, who: named(who), than: than, faster: true, want: want, show: times}
}

// targets are all that there are, by workload.
func targets() []target {
	all := []target{
		faster("w1", "rows, 1000", `psql \copy`, 0.48),
		faster("w1", "rows, 1000", "COPY loop, 1000", 1.05),
		faster("w1", "rows, 1000", "gorm CreateInBatches, 1000", 1.8),
		faster("w1", "rows, 1000", springPrefix+", third job, 1000", 2),
		faster("w1", "rows, 10000", `psql \copy`, 0.85),
		faster("w1", "rows, 10000", "COPY loop, double-buffered, 10000", 0.92),
		faster("w1", "rows, 10000", springPrefix+", third job, 10000", 3),
		faster("w2-insert", "rows, 1000", "INSERT ... SELECT", 0.42),
		faster("w2-update", "rows, 1000", "INSERT ... SELECT", 0.55),
		{text: "a page at the end: times the first ones", workload: "w2-pages", who: named("the last ten pages"), than: oursPrefix + " the first ten pages", want: 3, show: times},
	}
	for _, chunk := range []string{"1000", "10000"} {
		all = append(all, faster("w3", "rows, "+chunk, "loop with mattn (cgo), "+chunk, 0.7), faster("w3", "rows, "+chunk, "loop with our driver, "+chunk, 0.9))
	}
	return append(all,
		faster("w3b", "rows, 1000", "loop, an fsync for each chunk, 1000", 0.9),
		faster("w3b", "rows, 10000", "encoding/csv loop", 0.9),
		target{text: "an item with a processor: times the generic loop", workload: "w4", who: named("a step with a processor"), than: "generic loop with a processor", want: 2, show: times},
		target{text: "open at the position, and read the next row", workload: "w5", who: named("csv reader at its position"), want: 0.01, show: timeText},
		target{text: "the slowest listing or lookup", workload: "w6", who: isLookup, want: 0.001, show: timeText},
		target{text: "a launch: times one in a short history", workload: "w6", who: named("launch in a long history"), than: oursPrefix + " launch in a short history", want: 1.25, show: times},
		faster("w7", "four parts, four at a time", oursPrefix+" one step", 1.6),
		faster("w7", "four parts, two worker processes", oursPrefix+" one step", 1.6),
		target{text: "peak RSS with all rows", workload: "memory", who: named("all rows"), of: peakOfRun, want: 60 << 20, show: megabytes},
		target{text: "peak RSS: times that with a tenth of the rows", workload: "memory", who: named("all rows"), than: oursPrefix + " a tenth of the rows", of: peakOfRun, want: 1.2, show: times},
		target{text: "the process of a tasklet, PostgreSQL", workload: "start", who: named("a tasklet, PostgreSQL"), of: func(r run) float64 { return r.process }, want: 0.1, show: timeText},
	)
}

// isLookup tells the lookups of w6 by the names that they have there. A dry run reads the job file and the
// first items of its input.
func isLookup(name string) bool {
	of, ours := strings.CutPrefix(name, oursPrefix+" ")
	return ours && !strings.HasPrefix(of, "launch") && !strings.HasPrefix(of, "dry run")
}

// seen is what came of a target.
type seen struct {
	target
	value   spread
	who     string
	missing bool // it was not measured
	failed  bool
}

func (s seen) reached() bool {
	if s.faster {
		return s.value.median >= s.want
	}
	return s.value.median <= s.want
}

// in looks for the target in the tables.
func (t target) in(tables []*table) seen {
	s := seen{target: t, missing: true}
	for _, table := range tables {
		if table.workload.Name != t.workload {
			continue
		}
		than := table.lineOf(t.than)
		if t.than != "" && (than == nil || than.failed != nil) {
			return s
		}
		for _, l := range table.ordered() {
			if !t.who(l.contestant.Name()) {
				continue
			}
			if l.failed != nil {
				s.failed, s.missing = true, false
				return s
			}
			value := t.compared(l, than)
			if s.missing || (value.median > s.value.median) != t.faster {
				s.value, s.who, s.missing = value, l.contestant.Name(), false
			}
		}
	}
	return s
}

// compared is the value round by round.
func (t target) compared(l, than *line) spread {
	of := t.of
	if of == nil {
		of = func(r run) float64 { return r.Seconds }
	}
	values := make([]float64, len(l.runs))
	for i, r := range l.runs {
		values[i] = of(r)
		switch {
		case than == nil:
		case t.faster:
			values[i] = of(than.runs[i]) / values[i]
		default:
			values[i] /= of(than.runs[i])
		}
	}
	return spreadOf(values)
}

// lineOf returns the line of a contestant; nil: it was not asked for.
func (t *table) lineOf(name string) *line {
	for _, l := range t.lines {
		if l.contestant.Name() == name {
			return l
		}
	}
	return nil
}

// targetRows are the targets of the workloads that were run, with a head.
func targetRows(tables []*table) [][]string {
	ran := map[string]bool{}
	for _, t := range tables {
		ran[t.workload.Name] = true
	}
	rows := [][]string{{"", "target", "wanted", "seen", "least to most", ""}}
	for _, t := range targets() {
		if !ran[t.workload] {
			continue
		}
		wanted := "at most " + t.show(t.want)
		if t.faster {
			wanted = "at least " + t.show(t.want)
		}
		row := []string{t.workload, t.text, wanted}
		switch s := t.in(tables); {
		case s.failed:
			row = append(row, "failed", "", "not reached")
		case s.missing:
			row = append(row, "-", "", "not measured")
		default:
			if text := strings.TrimPrefix(s.who, oursPrefix+" "); !strings.Contains(t.text, text) && t.workload == "w6" && t.than == "" {
				row[1] += " (" + text + ")"
			}
			verdict := "reached"
			if !s.reached() {
				verdict = "not reached"
			}
			row = append(row, t.show(s.value.median), t.show(s.value.least)+" to "+t.show(s.value.most), verdict)
		}
		rows = append(rows, row)
	}
	return rows
}

// targetText is the table of targets, for a terminal or as markdown.
func targetText(tables []*table, markdown bool) string {
	rows := targetRows(tables)
	if !markdown {
		return "targets\n" + aligned(rows)
	}
	var out strings.Builder
	for i, row := range rows {
		if i > 0 && row[len(row)-1] == "not reached" {
			row[len(row)-1] = "**not reached**"
		}
		fmt.Fprintf(&out, "|%s|\n", strings.Join(row, "|"))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return out.String()
}
