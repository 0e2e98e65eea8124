package wording

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// Fault is where the mistake in a skipped item is; empty if unknown.
func Fault(f operator.Fault) string {
	var places []string
	if f.Column > 0 {
		places = append(places, fmt.Sprintf("column %d", f.Column))
	}
	switch {
	case f.From == nil:
	case *f.From == *f.To:
		places = append(places, "at the end")
	case *f.From+1 == *f.To:
		places = append(places, fmt.Sprintf("character %d", *f.To))
	default:
		places = append(places, fmt.Sprintf("characters %d to %d", *f.From+1, *f.To))
	}
	place := strings.Join(places, ", ")
	if f.Field != "" && place != "" {
		return f.Field + " (" + place + ")"
	}
	return f.Field + place
}

// RedriveSum counts the outcomes of a planned redrive, and says what is not known.
func RedriveSum(p *operator.RedrivePlan) string {
	var parts []string
	for _, c := range []struct {
		n    int
		text string
	}{
		{p.Written, "would be written"}, {p.Filtered, "would be filtered"}, {p.Skipped, "would be skipped again"}, {p.Failed, "would fail the redrive"},
		{p.Unknown, "cannot be checked"}, {p.Refused, "cannot be redriven"},
	} {
		if c.n > 0 {
			parts = append(parts, humanize.Count(c.n)+" "+c.text)
		}
	}
	text := humanize.Plural(len(p.Items), "item") + ": " + strings.Join(parts, ", ") + "."
	if p.Written == 0 || len(p.Writers) == 0 {
		return text
	}
	var writers []string
	for _, w := range p.Writers {
		writers = append(writers, strings.TrimSpace(w.Component+" "+w.Target))
	}
	return text + " Not checked: whether " + humanize.And(writers) + " takes them."
}
