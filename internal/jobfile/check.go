package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// stepDef is a checked step. A child job is one too: it has a child instead of a
// model.
type stepDef struct {
	name    string
	element *elementDef
	model   *stepModel
	child   *childDef
	on      *core.Placement // of its partitions or tasks; nil means any worker
	// A chunk step has a reader, processors and writers, a tasklet step has a tasklet.
	reader     *componentUse
	processors []*componentUse
	writers    []*componentUse
	tasklet    *componentUse
	listeners  []*componentUse
	// tasks is set for a step that runs tasks.
	tasks *tasksDef
	// partitioner lists the partitions; nil means that the step has none.
	partitioner *componentUse
	part        map[string]expression.Var
	expect      *condition
	promote     *model.Promotion
	// chunk is the step's chunk with the defaults of the file.
	chunk chunkDefaults
	retry *config.ItemRetryConfig
	skip  *config.ItemSkipConfig
	// timeout and transaction are the step's, with the defaults of the file.
	timeout     *time.Duration
	transaction *transactionModel
}

// components returns the step's components in the order of the pipeline.
func (s *stepDef) components() []*componentUse {
	list := append([]*componentUse{s.partitioner}, s.work()...)
	return slices.DeleteFunc(append(list, s.listeners...), func(u *componentUse) bool { return u == nil })
}

func (s *stepDef) work() []*componentUse {
	list := append([]*componentUse{s.reader}, s.processors...)
	list = append(append(list, s.writers...), s.tasklet)
	return slices.DeleteFunc(list, func(u *componentUse) bool { return u == nil })
}

func (s *stepDef) location() location {
	return location{element: s.element, step: s.name, part: s.part, unknown: s.model.Partition != nil && s.part == nil}
}

func (l *loader) checkStep(s *stepDef) {
	m := s.model
	switch {
	case m.Chunk != nil && m.Tasklet != nil:
		l.problems.Add(m.Node.KeyOf("tasklet"), fmt.Sprintf("step %s has a chunk and a tasklet", s.name), "make it two steps")
	case m.Tasks != nil && (m.Chunk != nil || m.Tasklet != nil):
		l.problems.Add(m.Node.KeyOf("tasks"), fmt.Sprintf("step %s has tasks beside other work", s.name), "make it two steps")
	case m.Node.Get("tasks") != nil:
	case m.Node.Get("chunk") == nil && m.Node.Get("tasklet") == nil && hasKeyOf(m.Node, reflect.TypeFor[chunkModel](), reflect.TypeFor[stepModel]()):
		// reported: its keys belong in `chunk`
	case m.Node.Get("chunk") == nil && m.Node.Get("tasklet") == nil:
		l.problems.Add(m.Node.KeyOf("step"), fmt.Sprintf("step %s does nothing", s.name), "it needs `chunk`, `tasklet` or `tasks`")
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
		u := l.resolve(registry.KindListener, ref, s.location())
		s.listeners = append(s.listeners, u)
		l.checkDatabaseFixed(u)
	}
	gate := s.location()
	gate.ownNumbers, gate.part, gate.unknown = true, nil, false
	s.expect = l.condition(m.Expect, "expect", gate)
	l.checkPromote(s)
}

func (l *loader) checkAtLeastOne(n *yamlfile.Node, key string, x *int) {
	if x != nil && *x < 1 {
		l.problems.Add(n.Get(key), key+" must be at least 1", "")
	}
}

// checkPartition checks the partitioner, and asks it for the names of `part`.
func (l *loader) checkPartition(s *stepDef) {
	m := s.model.Partition
	l.checkAtLeastOne(m.Node, "workers", m.Workers)
	s.part = map[string]expression.Var{
		"name": {Type: reflect.TypeFor[string]()}, "index": {Type: reflect.TypeFor[int64]()},
	}
	s.partitioner = l.resolve(registry.KindPartitioner, m.By, location{element: s.element, step: s.name})
	defer func() {
		names := map[string]expression.Var{} // not known
		if s.part != nil {
			names = s.part
		}
		s.on = l.on(m.On, m.Remote, names)
	}()
	u := s.partitioner
	if u == nil || !u.valid || u.component.Parts == nil {
		if u == nil || !u.valid { // its output type is unknown
			s.part = nil
		}
		return
	}
	var parts map[string]reflect.Type
	err := exception.Guard(func() (err error) {
		parts, err = u.component.Parts(u.cfg)
		return err
	})
	if err != nil {
		u.reportConfig(l.problems, err)
		s.part = nil
		return
	}
	for name, t := range parts {
		s.part[name] = expression.Var{Type: t}
	}
}

// checkPromote reads {step key: job key}.
func (l *loader) checkPromote(s *stepDef) {
	jobKeys := map[string]string{}
	for _, e := range s.model.Promote {
		to := e.Value.node
		if to == nil {
			continue // reported by the decoder
		}
		switch key := to.Text; {
		case !identifier.MatchString(key):
			l.problems.Add(to, fmt.Sprintf("promote: the job key %q is no identifier", key), identifierHint)
			continue
		case jobKeys[key] != "":
			l.problems.Add(to, fmt.Sprintf("promote: %s and %s are both promoted to %s", jobKeys[key], e.Name, key), "")
			continue
		}
		jobKeys[to.Text] = e.Name
		if s.promote == nil {
			s.promote = &model.Promotion{Keys: map[string]string{}}
		}
		s.promote.Keys[e.Name] = to.Text
	}
}

func (l *loader) checkPositive(n *yamlfile.Node, key string, d *time.Duration) {
	if d != nil && *d <= 0 {
		l.problems.Add(n.Get(key), key+" must be more than 0", "leave it out for none")
	}
}

func (l *loader) checkTransaction(s *stepDef) {
	m := s.model
	t := m.Transaction
	l.checkPositive(t.Node, "timeout", t.Timeout)
	if of := s.element.list.parent; t.Propagation == string(tx.Mandatory) && (of == nil || of.kind != atomicKind) {
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

func (l *loader) checkTasklet(s *stepDef) {
	s.tasklet = l.resolve(registry.KindTasklet, s.model.Tasklet, s.location())
	u := s.tasklet
	if u != nil && !u.valid {
		l.invalidTasklets = append(l.invalidTasklets, s.name)
	}
	if u == nil || !u.valid {
		return
	}
	l.checkDatabaseFixed(u)
	if u.component.Types != nil {
		if _, err := u.outputType(nil); err != nil {
			u.reportConfig(l.problems, err)
		}
	}
	fields := slices.Clone(u.component.Results)
	if u.component.Config != nil {
		if f, ok := yamlfile.FieldsOf(u.component.Config).Find("out"); ok && f.Type == reflect.TypeFor[item.Type]() {
			if out, _ := reflect.ValueOf(u.cfg).Elem().FieldByIndex(f.Index).Interface().(item.Type); out != nil && out.Schema() != nil {
				fields = append(slices.DeleteFunc(fields, func(f row.Field) bool { return out.Schema().Index(f.Name) >= 0 }), out.Schema().Fields()...)
			}
		}
	}
	if len(fields) == 0 {
		return
	}
	schema, err := row.NewSchema(fields...)
	if err != nil {
		l.problems.Add(u.ref.at, u.what+": its results: "+err.Error(), "this is a mistake in the component")
		return
	}
	l.file.outs[s.name] = schema
}

func (l *loader) checkChunk(s *stepDef) {
	m := s.model.Chunk
	l.checkRetrySkip(s)
	s.reader = l.resolve(registry.KindReader, m.Reader, s.location())
	complete := s.reader != nil && s.reader.valid
	for _, ref := range m.Processor {
		u := l.resolve(registry.KindProcessor, ref, s.location())
		complete = complete && u != nil && u.valid
		s.processors = append(s.processors, u)
	}
	l.checkExclusions(s)
	for _, ref := range m.Writer {
		s.writers = append(s.writers, l.resolve(registry.KindWriter, ref, s.location()))
	}
	for _, u := range withNested(s.work()...) {
		l.checkDatabaseFixed(u)
	}
	if complete {
		l.checkPipeline(s)
	} else {
		for _, u := range s.processors {
			u.checkSyntax(l.problems)
		}
	}
	l.checkWriters(s)
}

// checkPipeline follows the type of the items from stage to stage. It ends at a stage that does not fit,
// since the types after it are unknown.
func (l *loader) checkPipeline(s *stepDef) {
	stages := append([]*componentUse{s.reader}, s.processors...)
	var item item.Type
	for _, u := range stages {
		u.in = item
		out, ok := l.checkOutputType(u, item)
		if !ok {
			return
		}
		u.out, item = out, out
	}
	for _, u := range s.writers {
		if u != nil && u.valid {
			u.in = item
			l.checkOutputType(u, item)
		}
	}
}

// checkOutputType asks a stage for its output type. A stage without one passes on its input type.
func (l *loader) checkOutputType(u *componentUse, in item.Type) (item.Type, bool) {
	if u.component.Types == nil {
		if u.kind == registry.KindReader {
			l.problems.Add(u.ref.at, u.what+" does not say what items it reads", "its description in Go needs Types")
			return nil, false
		}
		return in, true
	}
	out, err := u.outputType(in)
	if err != nil {
		u.reportConfig(l.problems, err)
		return out, out != nil
	}
	if out == nil && u.kind != registry.KindWriter {
		l.problems.Add(u.ref.at, u.what+" does not say what items it hands on", "its description in Go must answer a type")
		return nil, false
	}
	return out, true
}

func (l *loader) checkDatabaseFixed(u *componentUse) {
	if _, has := u.database(); !has {
		return
	}
	if at := u.node.Get("database"); at != nil && u.late[at] != nil {
		l.problems.Add(at, "database: the name of a database is fixed when the file is loaded, it cannot be late-bound", "")
	}
}

// checkWriters makes sure that all writers of a step write to one database: its
// chunks are one transaction (rule C5).
func (l *loader) checkWriters(s *stepDef) {
	first := ""
	for _, u := range withNested(s.writers...) {
		name, has := u.database()
		if !has {
			continue
		}
		if name == "" {
			name = l.file.model.Database
		}
		if first == "" {
			first = name
		}
		if name != first {
			l.problems.Add(u.find("database"), fmt.Sprintf("the writers of one step write to one database, and here are %s and %s", first, name), "make it two steps")
		}
	}
}
