package check

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type steps struct{ *scopes }

func (l *steps) checkStep(s *tree.Step) {
	m := s.Model
	switch {
	case m.Chunk != nil && m.Tasklet != nil:
		l.problems.Add(m.Node.KeyOf("tasklet"), fmt.Sprintf("step %s has a chunk and a tasklet", s.Name), "make it two steps")
	case m.Tasks != nil && (m.Chunk != nil || m.Tasklet != nil):
		l.problems.Add(m.Node.KeyOf("tasks"), fmt.Sprintf("step %s has tasks and other work", s.Name), "make it two steps")
	case m.Node.Get("tasks") != nil:
	case m.Node.Get("chunk") == nil && m.Node.Get("tasklet") == nil && language.HasKeyOf(m.Node, reflect.TypeFor[language.Chunk](), reflect.TypeFor[language.Step]()):
	case m.Node.Get("chunk") == nil && m.Node.Get("tasklet") == nil:
		l.problems.Add(m.Node.KeyOf("step"), fmt.Sprintf("step %s has no work", s.Name), "it needs `chunk`, `tasklet` or `tasks`")
	}
	l.checkPositive(m.Node, "timeout", m.Timeout)
	l.checkAtLeastOne(m.Node, "start_limit", m.StartLimit)
	if m.Transaction != nil {
		l.checkTransaction(s)
	}
	l.inherit(s)
	if m.Partition != nil {
		l.checkPartition(s)
	}
	if m.Tasklet != nil {
		l.checkTasklet(s)
	}
	l.checkStepRetry(s)
	if m.Chunk != nil {
		l.checkChunk(s)
	}
	if m.Tasks != nil {
		l.checkTasks(s)
	}
	for _, ref := range m.Listeners {
		u := l.resolve(registry.KindListener, ref, locationOf(s))
		s.Listeners = append(s.Listeners, u)
		l.checkDatabaseFixed(u)
	}
	gate := locationOf(s)
	gate.ownNumbers, gate.part, gate.unknown = true, nil, false
	s.Expect = l.condition(m.Expect, "expect", gate)
	l.checkPromote(s)
}

func locationOf(s *tree.Step) location {
	return location{element: s.Element, step: s.Name, part: s.Part, unknown: s.Model.Partition != nil && s.Part == nil}
}

func (l *steps) checkPartition(s *tree.Step) {
	m := s.Model.Partition
	s.Part = map[string]expression.Var{
		"name": {Type: reflect.TypeFor[string]()}, "index": {Type: reflect.TypeFor[int64]()},
	}
	s.Partitioner = l.resolve(registry.KindPartitioner, m.By, location{element: s.Element, step: s.Name})
	defer func() {
		names := map[string]expression.Var{} // not known
		if s.Part != nil {
			names = s.Part
		}
		s.On = l.on(m.On, m.Remote, names)
	}()
	u := s.Partitioner
	if u == nil || !u.Valid || u.Component.Parts == nil {
		if u == nil || !u.Valid { // its output type is unknown
			s.Part = nil
		}
		return
	}
	var parts map[string]reflect.Type
	err := panics.Guard(func() (err error) {
		parts, err = u.Component.Parts(u.Cfg)
		return err
	})
	if err != nil {
		u.ReportConfig(l.problems, err)
		s.Part = nil
		return
	}
	for name, t := range parts {
		s.Part[name] = expression.Var{Type: t}
	}
	if _, is := u.Cfg.(trait.LineDivider); is && (u.Node.Kind != yamlfile.Map || u.Node.Get("path") == nil) {
		delete(s.Part, "path") // the reader has its own, and is asked for it
	}
}

func (l *steps) checkPromote(s *tree.Step) {
	jobKeys := map[string]string{}
	for _, e := range s.Model.Promote {
		to := e.Value.Node
		if to == nil {
			continue // reported by the decoder
		}
		switch key := to.Text; {
		case !language.Identifier.MatchString(key):
			l.problems.Add(to, fmt.Sprintf("promote: the job key %q is not an identifier", key), language.IdentifierHint)
			continue
		case jobKeys[key] != "":
			l.problems.Add(to, fmt.Sprintf("promote: %s and %s are both promoted to %s", jobKeys[key], e.Name, key), "")
			continue
		}
		jobKeys[to.Text] = e.Name
		if s.Promote == nil {
			s.Promote = &model.Promotion{Keys: map[string]string{}}
		}
		s.Promote.Keys[e.Name] = to.Text
	}
}

func (l *steps) checkTransaction(s *tree.Step) {
	m := s.Model
	t := m.Transaction
	l.checkPositive(t.Node, "timeout", t.Timeout)
	if of := s.Element.List.Parent; t.Propagation == string(tx.Mandatory) && (of == nil || of.Kind != language.AtomicKind) {
		l.problems.Add(t.Node.Get("propagation"), "propagation MANDATORY needs a transaction around the step", "put it into an atomic group")
	}
	if m.Chunk == nil {
		return
	}
	for key, why := range map[string]string{
		"propagation": "a chunk step has its own transaction per chunk",
		"read_only":   "a chunk step commits its position with its rows",
	} {
		if t.Node.Get(key) != nil {
			l.problems.Add(t.Node.KeyOf(key), fmt.Sprintf("transaction.%s is not for a chunk step: %s", key, why), "")
		}
	}
}

func (l *steps) checkTasklet(s *tree.Step) {
	s.Tasklet = l.resolve(registry.KindTasklet, s.Model.Tasklet, locationOf(s))
	u := s.Tasklet
	if u != nil && !u.Valid {
		l.invalidTasklets = append(l.invalidTasklets, s.Name)
	}
	if u == nil || !u.Valid {
		return
	}
	l.checkDatabaseFixed(u)
	if u.Component.Types != nil {
		if _, err := u.OutputType(nil); err != nil {
			u.ReportConfig(l.problems, err)
		}
	}
	fields := slices.Clone(u.Component.Results)
	if u.Component.Config != nil {
		if f, ok := yamlfile.FieldsOf(u.Component.Config).Find("out"); ok && f.Type == reflect.TypeFor[item.Type]() {
			if out, _ := reflect.ValueOf(u.Cfg).Elem().FieldByIndex(f.Index).Interface().(item.Type); out != nil && out.Schema() != nil {
				fields = append(slices.DeleteFunc(fields, func(f row.Field) bool { return out.Schema().Index(f.Name) >= 0 }), out.Schema().Fields()...)
			}
		}
	}
	if len(fields) == 0 {
		return
	}
	schema, err := row.NewSchema(fields...)
	if err != nil {
		l.problems.Add(u.Ref.At, u.What+": its results: "+err.Error(), "this is a mistake in the component")
		return
	}
	l.file.Outs[s.Name] = schema
}

func (l *steps) checkChunk(s *tree.Step) {
	m := s.Model.Chunk
	l.checkRetrySkip(s)
	s.Reader = l.resolve(registry.KindReader, m.Reader, locationOf(s))
	complete := s.Reader != nil && s.Reader.Valid
	for _, ref := range m.Processor {
		u := l.resolve(registry.KindProcessor, ref, locationOf(s))
		complete = complete && u != nil && u.Valid
		s.Processors = append(s.Processors, u)
	}
	l.checkExclusions(s)
	for _, ref := range m.Writer {
		s.Writers = append(s.Writers, l.resolve(registry.KindWriter, ref, locationOf(s)))
	}
	for _, u := range tree.WithNested(s.Work()...) {
		l.checkDatabaseFixed(u)
	}
	if complete {
		l.checkPipeline(s)
	} else {
		for _, u := range s.Processors {
			checkSyntax(u, l.problems)
		}
	}
	l.checkWriters(s)
}

// checkPipeline ends at a stage that does not fit, since the types after it are unknown.
func (l *steps) checkPipeline(s *tree.Step) {
	stages := append([]*tree.ComponentUse{s.Reader}, s.Processors...)
	var item item.Type
	for _, u := range stages {
		u.In = item
		out, ok := l.checkOutputType(u, item)
		if !ok {
			return
		}
		u.Out, item = out, out
	}
	for _, u := range s.Writers {
		if u != nil && u.Valid {
			u.In = item
			l.checkOutputType(u, item)
		}
	}
}

func (l *steps) checkOutputType(u *tree.ComponentUse, in item.Type) (item.Type, bool) {
	if u.Component.Types == nil {
		if u.Kind == registry.KindReader {
			l.problems.Add(u.Ref.At, u.What+" does not declare the type of the items that it reads", "its description in Go needs Types")
			return nil, false
		}
		return in, true
	}
	out, err := u.OutputType(in)
	if err != nil {
		u.ReportConfig(l.problems, err)
		return out, out != nil
	}
	if out == nil && u.Kind != registry.KindWriter {
		l.problems.Add(u.Ref.At, u.What+" does not declare the type of its output items", "Types in its description must return a type")
		return nil, false
	}
	return out, true
}

func (l *steps) checkDatabaseFixed(u *tree.ComponentUse) {
	if _, has := u.Database(); !has {
		return
	}
	if at := u.Node.Get("database"); at != nil && u.Late[at] != nil {
		l.problems.Add(at, "database: the name of a database is fixed when the file is loaded, it cannot be late-bound", "")
	}
}

// checkWriters: all writers of a step use one database, as its chunks are one
// transaction (rule C5).
func (l *steps) checkWriters(s *tree.Step) {
	first := ""
	for _, u := range tree.WithNested(s.Writers...) {
		name, has := u.Database()
		if !has {
			continue
		}
		if name == "" {
			name = l.file.Model.Database
		}
		if first == "" {
			first = name
		}
		if name != first {
			l.problems.Add(u.Find("database"), fmt.Sprintf("the writers of one step write to one database, and here are %s and %s", first, name), "make it two steps")
		}
	}
}
