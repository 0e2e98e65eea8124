package check

import (
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/model"
)

// checkDefaults checks the file's `defaults` once, at their position. Steps take nothing from defaults with a
// mistake.
func (l *steps) checkDefaults() {
	d := &l.file.Model.Defaults
	if d.Node == nil {
		return
	}
	before := l.problems.Reports()
	if at := d.Node.Get("chunk"); at != nil {
		l.checkChunkKeys(at, d.Chunk)
	}
	l.checkRetry(d.Node.Get("retry"), d.Retry)
	l.checkSkip(d.Node.Get("skip"), d.Skip)
	l.checkPositive(d.Node, "timeout", d.Timeout)
	if d.Transaction != nil {
		l.checkPositive(d.Node.Get("transaction"), "timeout", d.Transaction.Timeout)
	}
	l.file.BadDefaults = l.problems.Reports() > before
}

// inherit completes the timeout and the transaction of a step by the defaults.
func (l *steps) inherit(s *model.Step) {
	d := l.file.Defaults()
	s.Timeout, s.Transaction = s.Model.Timeout, s.Model.Transaction
	if s.Model.Tasks == nil && s.Model.Node.Get("timeout") == nil {
		s.Timeout = d.Timeout
	}
	if of := s.Element.List.Parent; s.Model.Tasks == nil && (of == nil || of.Kind != language.AtomicKind) {
		s.Transaction = l.file.WithDefaults(s.Model.Node, s.Model.Transaction)
	}
}
