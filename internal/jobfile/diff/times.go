package diff

import (
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// isAsBegun reports whether an execution ran this file, and last read its local times as this program does: then nothing is
// to be compared.
func isAsBegun(f *model.File, e, last *core.JobExecution) bool {
	return e.Definition.Hash == f.Definition().Hash && !last.FormerTimes
}

// formerTimes refuses to continue chunk steps with committed work after an execution whose program read a time without an
// offset as UTC: the rest of their rows would have other times than the rows that are written (rule D5). Which readers,
// writers and expressions see such a time is not known, so each chunk step counts.
func (c *comparison) formerTimes() []Change {
	if c.after.Clock.Zone == time.UTC {
		return nil
	}
	var changes []Change
	for _, s := range c.after.Steps {
		old, h := c.before.StepNamed(s.Name), c.history[s.Name]
		if s.Reader == nil || old == nil || s.Element.List.Finally || h.Last.ID == 0 || isOver(h.Last) {
			continue
		}
		committed := c.hasCommitted(old, h.Last)
		if old.Partitioner != nil {
			committed = c.hasCommittedParts(old)
		}
		if committed {
			changes = append(changes, Change{
				Step: s.Name, Refused: true, FormerTimes: true, Place: c.place(s.Element.Model.Node),
				What: "has committed work: an earlier version read times without an offset as UTC, and they are now times of " + c.after.Clock.Zone.String(),
			})
		}
	}
	return changes
}
