package wording

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
)

// Leader describes the worker that leads; "" means that there never was one.
func Leader(l *taskports.Leader) string {
	switch {
	case l == nil:
		return ""
	case !l.Leading:
		return fmt.Sprintf("No worker leads: nothing starts scheduled runs (epoch %d ended).", l.Epoch)
	}
	text := fmt.Sprintf("%s leads in epoch %d", l.Holder, l.Epoch)
	if !l.Since.IsZero() {
		text += " since " + humanize.Time(l.Since)
	}
	return text + "; its lease lasts " + humanize.Seconds(l.LeaseLeft) + "."
}

// LeaseLeft is the rest of the lease of work; "" means that it has none.
func LeaseLeft(h *taskports.Held) string {
	switch {
	case h.LeaseLeft == nil:
		return ""
	case h.IsOrphaned():
		return "over since " + humanize.Seconds(-*h.LeaseLeft)
	}
	return humanize.Seconds(*h.LeaseLeft) + " left"
}

// AtMost is a count that ends at a bound.
func AtMost(n, bound int) string {
	if n >= bound {
		return "≥ " + humanize.Count(n)
	}
	return humanize.Count(n)
}
