package jobfile

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// isAsBegun reports whether an execution ran this file, and last read its local times as this program does: then nothing is
// to be compared.
func isAsBegun(f *fileDef, e, last *core.JobExecution) bool {
	return e.Definition.Hash == f.definition().Hash && !last.FormerTimes
}

// formerTimes refuses to continue chunk steps with committed work after an execution whose program read a time without an
// offset as UTC: the rest of their rows would have other times than the rows that are written (rule D5). Which readers,
// writers and expressions see such a time is not known, so each chunk step counts.
func (c *comparison) formerTimes() []Change {
	if c.after.clock.zone == time.UTC {
		return nil
	}
	var changes []Change
	for _, s := range c.after.steps {
		old, h := c.before.stepNamed(s.name), c.history[s.name]
		if s.reader == nil || old == nil || s.element.list.finally || h.Last.ID == 0 || isOver(h.Last) {
			continue
		}
		committed := c.hasCommitted(old, h.Last)
		if old.partitioner != nil {
			committed = c.hasCommittedParts(old)
		}
		if committed {
			changes = append(changes, Change{
				Step: s.name, Refused: true, FormerTimes: true, Place: c.place(s.element.model.node),
				What: "has committed work: an earlier version read times without an offset as UTC, and they are now times of " + c.after.clock.zone.String(),
			})
		}
	}
	return changes
}
