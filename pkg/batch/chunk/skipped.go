package chunk

import (
	"cmp"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// inOrder are the skips of the chunk in hand in the order of the input, in which
// they are told and stored: a failed read before the item that follows it.
func (p *pipeline) inOrder() []*skip {
	slices.SortStableFunc(p.skips, func(a, b *skip) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(order(a), order(b)))
	})
	return p.skips
}

// records are the stored forms of the skips that the part makes facts.
func (p *pipeline) records(c *part) []core.SkippedItem {
	var list []core.SkippedItem
	at := p.start
	reads := int64(0) // skipped ones before it
	for _, s := range p.inOrder() {
		if s.place >= c.to && !c.all {
			break
		}
		at.Items = p.start.Items + p.passed + int64(s.place-p.settled) + reads
		list = append(list, p.record(s, at))
		if s.phase == core.PhaseRead {
			reads++
		}
	}
	return list
}

func order(s *skip) int {
	if s.phase == core.PhaseRead {
		return 0
	}
	return 1
}

// record is what is stored of a skip (rule C12); before is the position in front
// of the item.
func (p *pipeline) record(s *skip, before position) core.SkippedItem {
	r := core.SkippedItem{
		StepExecutionID: p.exec.Step.ID, Phase: s.phase, Meta: s.meta, Error: s.err.Error(),
	}
	before.Writers = nil
	if mark, err := before.encode(); err == nil { // a mark that is too long is left out
		r.Mark = mark
	}
	r.Class = p.step.classOf(s.err)
	if s.phase != core.PhaseRead {
		r.Item, r.Truncated, r.SHA256 = core.EncodeSkippedItem(s.item)
	}
	return r
}
