package main

import (
	"fmt"
	"slices"
	"strings"
)

type target struct {
	// text describes the comparison.
	text, workload string
	who            func(name string) bool
	// than is the contestant that it is compared with; empty means that the
	// value itself counts.
	than string
	// of is the compared value; nil means the seconds of the work.
	of func(run) float64
	// faster requires at least want times the speed of than. Otherwise the
	// value is at most want: that many times than, or that much.
	faster bool
	want   float64
	show   func(value float64) string
	// limits are contestants that do the same work by hand, with the same
	// promises and without an engine. The best of them shows how far a target
	// can be reached at all.
	limits []string
}

func (t target) limitedBy(contestants ...string) target {
	t.limits = contestants
	return t
}

func named(name string) func(string) bool {
	return func(n string) bool { return n == oursPrefix+" "+name }
}

func times(v float64) string { return fmt.Sprintf("%.2f ×", v) }

func megabytes(v float64) string { return fmt.Sprintf("%.0f MB", v/(1<<20)) }

func peakOfRun(r run) float64 { return float64(r.peak) }

// faster is a target for the speed of one of ours compared with another contestant.
func faster(workload, who, than string, want float64) target {
	return target{text: who + ": of " + than, workload: workload, who: named(who), than: than, faster: true, want: want, show: times}
}

func targets() []target {
	copy1000, copy10000 := []string{"COPY loop, 1000", "COPY loop, double-buffered, 1000"}, []string{"COPY loop, 10000", "COPY loop, double-buffered, 10000"}
	all := []target{
		faster("w1", "rows, 1000", `psql \copy`, 0.48).limitedBy(copy1000...),
		faster("w1", "rows, 1000", "COPY loop, 1000", 1.05).limitedBy(copy1000...),
		faster("w1", "rows, 1000", "gorm CreateInBatches, 1000", 1.8).limitedBy(copy1000...),
		faster("w1", "rows, 1000", springPrefix+", third job, 1000", 2).limitedBy(copy1000...),
		faster("w1", "rows, open console, 1000", oursPrefix+" rows, 1000", 0.99),
		faster("w1", "rows, 10000", `psql \copy`, 0.85).limitedBy(copy10000...),
		faster("w1", "rows, 10000", "COPY loop, double-buffered, 10000", 0.92).limitedBy(copy10000...),
		faster("w1", "rows, 10000", springPrefix+", third job, 10000", 3).limitedBy(copy10000...),
		faster("w2-insert", "rows, 1000", "INSERT ... SELECT", 0.42).limitedBy("loop by key and UNNEST, 1000"),
		faster("w2-update", "rows, 1000", "INSERT ... SELECT", 0.55).limitedBy("loop by key and UNNEST, 1000"),
		{text: "a page at the end: times the first ones", workload: "w2-pages", who: named("the last ten pages"), than: oursPrefix + " the first ten pages", want: 3, show: times},
	}
	for _, chunk := range []string{"1000", "10000"} {
		limits := []string{"loop with our driver, " + chunk, "loop with our driver, double-buffered, " + chunk}
		all = append(all,
			faster("w3", "rows, "+chunk, "loop with mattn (cgo), "+chunk, 0.7).limitedBy(limits...),
			faster("w3", "rows, "+chunk, "loop with our driver, "+chunk, 0.9).limitedBy(limits...))
	}
	all = append(all,
		faster("w9", "csv, two parts, 10000", `psql \copy`, 1.15).limitedBy(copyPartsName("csv", 2), twoCopiesName),
		faster("w9", "csv, two parts, 10000", twoCopiesName, 0.8).limitedBy(copyPartsName("csv", 2)),
		faster("w9", "jsonl, two parts, 10000", oursPrefix+" jsonl, one part, 10000", 1.6).limitedBy(copyPartsName("jsonl", 2)),
		faster("w9", "fixed, two parts, 10000", oursPrefix+" fixed, one part, 10000", 1.6).limitedBy(copyPartsName("fixed", 2)))
	all = append(append(all, consoleTargets()...), loadedTargets()...)
	return append(all,
		faster("w3b", "rows, 1000", "loop, an fsync for each chunk, 1000", 0.9).limitedBy(typedWithPosition(1000)),
		faster("w3b", "rows, 10000", "encoding/csv loop", 0.9).limitedBy("encoding/csv loop, typed", typedWithPosition(10_000)),
		target{text: "an item with a processor: times the generic loop", workload: "w4", who: named("a step with a processor"), than: "generic loop with a processor", want: 2, show: times},
		target{text: "open at the position, and read the next row", workload: "w5", who: named("csv reader at its position"), want: 0.01, show: timeText}.limitedBy("seek to a known offset"),
		target{text: "the slowest list: times a page by hand", workload: "w6", who: isList, than: pageByHand, want: 2, show: times},
		target{text: "the slowest other lookup: times a page by hand", workload: "w6", who: func(name string) bool { return isLookup(name) && !isList(name) }, than: pageByHand, want: 1.5, show: times},
		target{text: "a launch: times one in a short history", workload: "w6", who: named("launch in a long history"), than: oursPrefix + " launch in a short history", want: 1.25, show: times},
		faster("w7", "four parts, four at a time", oursPrefix+" one step", 1.6).limitedBy("two loops at a time, no engine"),
		faster("w7", "four parts, two worker processes", oursPrefix+" one step", 1.6).limitedBy("two loops at a time, no engine"),
		target{text: "peak RSS with all rows", workload: "memory", who: named("all rows"), of: peakOfRun, want: 60 << 20, show: megabytes},
		target{text: "peak RSS: times that with a tenth of the rows", workload: "memory", who: named("all rows"), than: oursPrefix + " a tenth of the rows", of: peakOfRun, want: 1.2, show: times},
		target{text: "the process of a tasklet, PostgreSQL", workload: "start", who: named("a tasklet, PostgreSQL"), of: func(r run) float64 { return r.process }, want: 0.1, show: timeText},
		target{text: "a job of three tasklets, PostgreSQL", workload: "start", who: named("three tasklets in a process that has run them before, PostgreSQL"), want: 0.01, show: timeText},
	)
}

// isCompared reports whether a target is about a contestant of a workload, itself or as the one it is
// compared with.
func isCompared(workload, name string) bool {
	return slices.ContainsFunc(targets(), func(t target) bool {
		return t.workload == workload && (t.who(name) || t.than == name || slices.Contains(t.limits, name))
	})
}

// isLookup recognizes the listings and lookups of w6 by their names there.
func isLookup(name string) bool {
	of, ours := strings.CutPrefix(name, oursPrefix+" ")
	return ours && !slices.ContainsFunc([]string{"launch", "dry run", "explain", "the instance"}, func(other string) bool { return strings.HasPrefix(of, other) })
}

func isList(name string) bool { return strings.HasPrefix(name, oursPrefix+" list ") }

type seen struct {
	target
	value   spread
	line    *line // of ours, that the value is of
	missing bool
	failed  bool
	limit   *limit
}

type limit struct {
	who   string
	value spread
	ours  spread
}

// worse reports whether a is a worse value of the target than b.
func (t target) worse(a, b float64) bool {
	if t.faster {
		return a < b
	}
	return a > b
}

func (t target) reaches(v spread) bool { return !t.worse(v.median, t.want) }

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
			if value := t.compared(l, than); s.missing || t.worse(value.median, s.value.median) {
				s.value, s.line, s.missing = value, l, false
			}
		}
		if !s.missing {
			s.limit = s.limitIn(table, than)
		}
	}
	return s
}

// limitIn returns the best of the limits that were measured, or nil.
func (s seen) limitIn(table *table, than *line) *limit {
	var best *limit
	for _, name := range s.limits {
		l := table.lineOf(name)
		if l == nil || l.failed != nil {
			continue
		}
		if value := s.compared(l, than); best == nil || s.worse(best.value.median, value.median) {
			best = &limit{who: name, value: value, ours: s.compared(s.line, l)}
		}
	}
	return best
}

func (t target) compared(l, than *line) spread {
	of := t.of
	if of == nil {
		of = func(r run) float64 { return r.Seconds }
	}
	runs := l.runs
	if than != nil {
		runs = runs[:min(len(runs), len(than.runs))]
	}
	values := make([]float64, len(runs))
	for i, r := range runs {
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

// lineOf returns the line of a contestant, or nil if it was not requested.
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
	rows := [][]string{{"", "target", "wanted", "seen", "least to most", "", "the limit"}}
	for _, t := range targets() {
		if ran[t.workload] {
			rows = append(rows, t.in(tables).row())
		}
	}
	return rows
}

func (s seen) row() []string {
	wanted := "at most " + s.show(s.want)
	if s.faster {
		wanted = "at least " + s.show(s.want)
	}
	switch {
	case s.failed:
		return []string{s.workload, s.text, wanted, "failed", "", notReached, "-"}
	case s.missing:
		return []string{s.workload, s.text, wanted, "-", "", "not measured", "-"}
	}
	text := s.text
	if who := strings.TrimPrefix(s.line.contestant.Name(), oursPrefix+" "); !strings.Contains(text, who) && (s.workload == "w6" || s.workload == "w8") && (s.than == "" || s.than == pageByHand) {
		text += " (" + who + ")"
	}
	limit := "-"
	if s.limit != nil {
		limit = fmt.Sprintf("%s (%s): %s", s.show(s.limit.value.median), s.between(s.limit.value), s.limit.who)
	}
	return []string{s.workload, text, wanted, s.show(s.value.median), s.between(s.value), s.verdict(), limit}
}

func (t target) between(v spread) string { return t.show(v.least) + " to " + t.show(v.most) }

const notReached = "not reached"

// verdict reports whether the target is reached, and if not, whether the limit would reach it.
func (s seen) verdict() string {
	switch {
	case s.reaches(s.value):
		return "reached"
	case s.limit == nil || s.reaches(s.limit.value):
		return notReached
	}
	return fmt.Sprintf("%s: the limit is %s, and ours is %s that", notReached, s.show(s.limit.value.median), times(s.limit.ours.median))
}

// targetText is the table of targets, for a terminal or as markdown.
func targetText(tables []*table, markdown bool) string {
	rows := targetRows(tables)
	if !markdown {
		return "targets\n" + aligned(rows)
	}
	var out strings.Builder
	for i, row := range rows {
		line := strings.Join(row, "|")
		fmt.Fprintf(&out, "|%s|\n", strings.Replace(line, notReached, "**"+notReached+"**", 1))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return out.String()
}
