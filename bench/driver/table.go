package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

type table struct {
	workload Workload
	rows     int
	rounds   int
	floor    Contestant
	lines    []*line
}

type line struct {
	contestant Contestant
	place      int  // in the workload
	compared   bool // by a target, or the floor
	failed     error
	runs       []run // by round
}

// moreRounds are further rounds for the contestants of targets, and the floor: a target depends on few runs,
// and one of them may meet a busy moment of the machine.
const moreRounds = 2

func newTable(of Workload, rows, rounds int) *table {
	if of.Rounds > 0 {
		rounds = min(rounds, of.Rounds)
	}
	return &table{workload: of, rows: rows, rounds: rounds, floor: of.Contestants[0]}
}

func (t *table) add(c Contestant, failed error) {
	l := &line{contestant: c, place: len(t.lines), failed: failed, compared: len(t.lines) == 0 || isCompared(t.workload.Name, c.Name())}
	rounds := t.rounds
	if l.compared {
		rounds += t.more()
	}
	l.runs = make([]run, rounds)
	t.lines = append(t.lines, l)
}

// shuffle puts the lines into the order of a round. Contestants that targets
// compare run one right after the other, for the machine is busier in one
// minute than in another.
func (t *table) shuffle(order *rand.Rand) {
	order.Shuffle(len(t.lines), func(i, j int) { t.lines[i], t.lines[j] = t.lines[j], t.lines[i] })
	beside := func(l *line) int {
		if _, peer := l.contestant.(Peer); l.compared && !peer {
			return 1
		}
		return 0
	}
	sign := 1 - 2*order.IntN(2)
	slices.SortStableFunc(t.lines, func(a, b *line) int { return sign * cmp.Compare(beside(a), beside(b)) })
}

func (t *table) more() int {
	if t.workload.Rounds > 0 {
		return 0
	}
	return moreRounds
}

// mostRounds is the number of the floor's rounds.
func (t *table) mostRounds() int { return t.rounds + t.more() }

func (t *table) ordered() []*line {
	return slices.SortedFunc(slices.Values(t.lines), func(a, b *line) int { return cmp.Compare(a.place, b.place) })
}

func (t *table) failures() int {
	n := 0
	for _, l := range t.lines {
		if l.failed != nil {
			n++
		}
	}
	return n
}

func (t *table) ratio(l *line) spread {
	floor := t.ordered()[0]
	ratios := make([]float64, t.rounds) // of all contestants: rounds are not alike
	for i := range ratios {
		switch of, other := floor.runs[i], l.runs[i]; t.workload.Metric {
		case memory:
			ratios[i] = float64(other.peak) / float64(of.peak)
		case started:
			ratios[i] = of.process / other.process
		case speed:
			ratios[i] = of.Seconds / other.Seconds
		}
	}
	return spreadOf(ratios)
}

func columns() []string {
	return []string{"", "of the floor", "least to most", "rows/s", "time", "process", "peak RSS", "client CPU", "server CPU", "checked"}
}

func (t *table) cells(l *line) []string {
	name := l.contestant.Name()
	if l.failed != nil {
		return []string{name, "failed", "", "", "", "", "", "", "", ""}
	}
	ratio := t.ratio(l)
	median := func(of func(run) float64) float64 { return spreadOf(each(l.runs[:t.rounds], of)).median }
	seconds := median(func(r run) float64 { return r.Seconds })
	checked := "-"
	if t.workload.Check != nil {
		checked = "rows"
	}
	if l.contestant.Restarts() {
		checked += ", kill -9"
	}
	rate := "-"
	if t.workload.Check != nil && t.workload.Metric == speed && !t.workload.Part && seconds > 0 {
		rate = fmt.Sprintf("%.0f k", float64(t.rows)/seconds/1000)
	}
	server := "-"
	if cpu := median(func(r run) float64 { return r.serverCPU }); cpu >= 0 {
		server = timeText(cpu)
	}
	return []string{
		name, fmt.Sprintf("%.2f", ratio.median), fmt.Sprintf("%.2f to %.2f", ratio.least, ratio.most), rate,
		timeText(seconds), timeText(median(func(r run) float64 { return r.process })),
		fmt.Sprintf("%.0f MB", median(func(r run) float64 { return float64(r.peak) })/(1<<20)),
		timeText(median(func(r run) float64 { return r.clientCPU })), server, checked,
	}
}

func timeText(seconds float64) string {
	switch {
	case seconds < 1e-6:
		return fmt.Sprintf("%.1f ns", seconds*1e9)
	case seconds < 0.001:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case seconds < 0.1:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	default:
		return fmt.Sprintf("%.2f s", seconds)
	}
}

func (t *table) title() string {
	return fmt.Sprintf("%s: %s; %d rows, %d rounds, and %d more for targets", t.workload.Name, t.workload.Title, t.rows, t.rounds, t.more())
}

// text is the table for a terminal, or as markdown, and why contestants have failed.
func (t *table) text(markdown bool) string {
	var out strings.Builder
	if markdown {
		fmt.Fprintf(&out, "**%s**\n\n|%s|\n|%s\n", t.title(), strings.Join(columns(), "|"), strings.Repeat("---|", len(columns())))
		for _, l := range t.ordered() {
			fmt.Fprintf(&out, "|%s|\n", strings.Join(t.cells(l), "|"))
		}
	} else {
		out.WriteString(t.title() + "\n" + t.aligned())
	}
	for _, l := range t.ordered() {
		if l.failed != nil {
			fmt.Fprintf(&out, "\n%s failed: %s\n", l.contestant.Name(), strings.Join(strings.Fields(l.failed.Error()), " "))
		}
	}
	return out.String()
}

func (t *table) aligned() string {
	rows := [][]string{columns()}
	for _, l := range t.ordered() {
		rows = append(rows, t.cells(l))
	}
	return aligned(rows)
}

func aligned(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var out strings.Builder
	for _, cells := range rows {
		line := ""
		for i, c := range cells {
			line += c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}
