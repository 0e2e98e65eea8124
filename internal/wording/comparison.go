package wording

import (
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// Compared is the first line of a comparison: both sides, and their durations.
func Compared(c *operator.Comparison) string {
	side := func(of operator.Compared) string {
		return fmt.Sprintf("(%s, started %s)", of.Status, humanize.Time(of.Started))
	}
	other := fmt.Sprintf("execution %s %s", ID(c.With.ID), side(c.With))
	if n := len(c.Typical); n > 0 {
		other = "the median of the last " + humanize.Plural(n, "completed execution")
	}
	return fmt.Sprintf("Execution %s of job %s %s took %s%s, %s %s.",
		ID(c.Execution.ID), c.JobName, side(c.Execution), humanize.Seconds(c.Duration.This), percent(c.Duration), other, humanize.Seconds(c.Duration.With))
}

// Differences are the differences of a comparison apart from its steps, one a line; none if there is none.
func Differences(c *operator.Comparison) []string {
	lines := errorsOf(c)
	for _, p := range c.Parameters {
		lines = append(lines, fmt.Sprintf("parameter %s: %s, before %s", p.Name, value(p.This), value(p.With)))
	}
	for _, d := range c.Definition {
		place := ""
		if d.Place != "" {
			place = " (" + d.Place + ")"
		}
		lines = append(lines, "job file: "+d.String()+place)
	}
	if c.DefinitionProblem != "" {
		lines = append(lines, "job file: changed, but this program cannot compare it: "+c.DefinitionProblem)
	}
	for _, d := range c.Decisions {
		lines = append(lines, fmt.Sprintf("decision %s: %s, before %s", d.Element, orNone(d.This), orNone(d.With)))
	}
	for _, g := range c.Gates {
		of := "expect of the job"
		if g.Element != "" {
			of = "expect of step " + g.Element
		}
		lines = append(lines, fmt.Sprintf("%s: %s, before %s", of, orNone(g.This), orNone(g.With)))
	}
	for _, s := range c.Skips {
		line := fmt.Sprintf("skipped in step %s, phase %s, class %s: %s, before %s", s.Step, s.Phase, s.Class, number(s.Count.This), number(s.Count.With))
		if s.More {
			line += " (of the first 5,000 skipped items)"
		}
		lines = append(lines, line)
	}
	return lines
}

// errorsOf are the errors of both sides, once if they are the same.
func errorsOf(c *operator.Comparison) (lines []string) {
	this, with := c.Execution.Error, c.With.Error
	if this == with && this != "" {
		return []string{"error of both: " + humanize.OneLine(this)}
	}
	for _, side := range []operator.Compared{c.Execution, c.With} {
		if side.Error != "" && side.Status.IsOver() { // a parked one names there the work that it waits for
			lines = append(lines, "error of execution "+ID(side.ID)+": "+humanize.OneLine(side.Error))
		}
	}
	return lines
}

// Figure is a number with its change: "1,000 (+12.5%)".
func Figure(f operator.Figure) string {
	if f == (operator.Figure{}) {
		return ""
	}
	return number(f.This) + percent(f)
}

// DurationFigure is a duration with its change.
func DurationFigure(f operator.Figure) string { return humanize.Seconds(f.This) + percent(f) }

func percent(f operator.Figure) string {
	if f.Percent == nil {
		return ""
	}
	return fmt.Sprintf(" (%+.1f%%)", *f.Percent)
}

func number(f float64) string { return humanize.Count(int64(f)) }

func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "not given"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
