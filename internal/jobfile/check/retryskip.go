package check

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func (l *steps) checkRetrySkip(s *tree.Step) {
	m, d := s.Model.Chunk, l.file.Defaults()
	s.Chunk = m.ChunkDefaults
	tree.MergeDefaults(m.Node, reflect.ValueOf(&s.Chunk).Elem(), d.Node.Get("chunk"), reflect.ValueOf(d.Chunk))
	s.Retry = tree.Merged(m.Node.Get("retry"), m.Retry, d.Node.Get("retry"), d.Retry)
	s.Skip = tree.Merged(m.Node.Get("skip"), m.Skip, d.Node.Get("skip"), d.Skip)
	l.checkChunkKeys(m.Node, m.ChunkDefaults)
	l.checkRetry(m.Node.Get("retry"), s.Retry)
	l.checkSkip(m.Node.Get("skip"), s.Skip)
}

func (l *steps) checkExclusions(s *tree.Step) {
	if u := s.Positioned(); u != nil {
		other := "the " + u.What + ", which has a position,"
		if s.Chunk.Concurrency != nil && *s.Chunk.Concurrency > 1 {
			l.reportExclusion(s, "concurrency", other, "its position depends on the order of the items: leave concurrency out, or partition the step")
		}
		if !s.Chunk.Reprocess {
			l.reportExclusion(s, "reprocess", other, "outputs that are kept have no position of their own: leave reprocess out")
		}
	}
	if !s.Chunk.ProcessInTransaction && s.InTransaction() == nil {
		return
	}
	other := "process_in_transaction"
	if u := s.InTransaction(); u != nil {
		other = "the " + u.What
	}
	if s.Chunk.Concurrency != nil && *s.Chunk.Concurrency > 1 {
		l.reportExclusion(s, "concurrency", other, "a transaction has one connection, and so one goroutine at a time")
	}
	if !s.Chunk.Reprocess {
		l.reportExclusion(s, "reprocess", other, "what a processor does in a transaction is undone with it, and has to be done again")
	}
}

// checkStepRetry: the defaults are for work that a transaction undoes; a tasklet without one is
// repeated only if its own step asks for it.
func (l *steps) checkStepRetry(s *tree.Step) {
	m, d := s.Model, l.file.Defaults()
	n := m.Node.Get("retry")
	group := s.Element != nil && s.Element.List.Parent != nil && s.Element.List.Parent.Kind == language.AtomicKind
	if u := s.Tasklet; group && u != nil && u.Component.OwnCommits {
		l.problems.Add(m.Node.KeyOf("tasklet"), fmt.Sprintf("step %s is in an atomic group, and a %s commits in transactions of its own: the group's rollback would not undo it", s.Name, u.Component.Name),
			"put the step before the group")
	}
	switch {
	case n != nil && m.Tasks != nil:
		l.problems.Add(m.Node.KeyOf("retry"), "retry is for a tasklet, and tasks have a budget", "write `budget: {max_attempts: 3}` in `tasks`")
	case n != nil && m.Tasklet == nil:
		l.problems.Add(m.Node.KeyOf("retry"), "retry of a chunk step belongs in `chunk`", "it is of each item and of the chunk")
	case n != nil && group:
		l.problems.Add(m.Node.KeyOf("retry"), "a step of an atomic group is not retried: the group is one transaction", "a restart runs the group again from its beginning")
	case m.Tasklet == nil || group:
	default:
		l.checkRetry(n, m.Retry)
		s.Retry = m.Retry
		transactional := s.Tasklet != nil && !s.Tasklet.Component.NoTransaction
		if n != nil || transactional {
			s.Retry = tree.Merged(n, m.Retry, d.Node.Get("retry"), d.Retry)
		}
	}
}

func (l *steps) reportExclusion(s *tree.Step, key, other, why string) {
	chunk := s.Model.Chunk.Node
	at := s.Model.Node.KeyOf("chunk")
	for _, written := range []string{key, "process_in_transaction"} {
		if chunk.Get(written) != nil {
			at = chunk.KeyOf(written)
			break
		}
	}
	if key == "reprocess" {
		key = "reprocess: false"
	}
	l.problems.Add(at, key+" and "+other+" exclude each other", why)
}

func (l *steps) checkChunkKeys(n *yamlfile.Node, c language.ChunkDefaults) {
	l.checkAtLeastOne(n, "size", c.Size)
	l.checkAtLeastOne(n, "concurrency", c.Concurrency)
}

func (l *steps) checkRetry(n *yamlfile.Node, c *config.ItemRetryConfig) {
	if n == nil || c == nil {
		return
	}
	l.checkLimit(n, c.Limit)
	l.checkClasses(n)
	at, err := n.Get("backoff"), c.Backoff.Validate()
	if at == nil || err == nil {
		return
	}
	for _, e := range flatten(err) {
		l.problems.Add(at, "backoff: "+e.Error(), "")
	}
}

func (l *steps) checkSkip(n *yamlfile.Node, c *config.ItemSkipConfig) {
	if n == nil || c == nil {
		return
	}
	l.checkLimit(n, c.Limit)
	l.checkClasses(n)
}

func (l *steps) checkLimit(n *yamlfile.Node, limit int) {
	if limit >= 0 {
		return
	}
	if at := n.Get("limit"); at != nil {
		n = at
	}
	l.problems.Add(n, "limit must be 0 or more", "")
}

func (l *steps) checkClasses(n *yamlfile.Node) {
	matchers := l.reg.Matchers()
	for _, key := range []string{"errors", "except"} {
		list := n.Get(key)
		if list == nil || list.Bad || list.Kind != yamlfile.List {
			continue // reported by the decoder
		}
		for _, item := range list.Items {
			if item.Bad || item.Kind != yamlfile.Scalar || item.Empty {
				continue
			}
			err := matchers.Check(item.Text)
			var unknown *exception.UnknownMatcherError
			switch {
			case err == nil:
			case strings.TrimSpace(item.Text) == "":
				l.problems.Add(item, key+": the name of an error class is missing", "")
			case errors.As(err, &unknown):
				l.problems.Add(item, fmt.Sprintf("%s: there is no error class %s", key, unknown.Name), yamlfile.Suggest(unknown.Name, unknown.Known))
			default:
				hint := ""
				if strings.Contains(item.Text, "(") && !strings.HasSuffix(item.Text, ")") {
					hint = "a name with a comma goes in quotes"
				}
				l.problems.Add(item, key+": "+err.Error(), hint)
			}
		}
	}
}

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

func (l *steps) inherit(s *tree.Step) {
	d := l.file.Defaults()
	s.Timeout, s.Transaction = s.Model.Timeout, s.Model.Transaction
	if s.Model.Tasks == nil && s.Model.Node.Get("timeout") == nil {
		s.Timeout = d.Timeout
	}
	if of := s.Element.List.Parent; s.Model.Tasks == nil && (of == nil || of.Kind != language.AtomicKind) {
		s.Transaction = l.file.WithDefaults(s.Model.Node, s.Model.Transaction)
	}
}
