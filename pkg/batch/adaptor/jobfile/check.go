package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
)

// stepDef is a checked step.
type stepDef struct {
	name  string
	model *elementModel
	// A chunk step has a reader, processors and writers, a tasklet step a tasklet.
	reader     *use
	processors []*use
	writers    []*use
	tasklet    *use
	listeners  []*use
	edges      []core.Transition
	// chunk is what the chunk says, with the defaults of the file.
	chunk chunkDefaults
	retry *config.ItemRetryConfig
	skip  *config.ItemSkipConfig
}

// uses returns the components of the step, in the order of the pipeline.
func (s *stepDef) uses() []*use {
	list := append([]*use{s.reader}, s.processors...)
	list = append(append(append(list, s.writers...), s.tasklet), s.listeners...)
	return slices.DeleteFunc(list, func(u *use) bool { return u == nil })
}

// declareSteps collects the steps' names.
func (l *loader) declareSteps() {
	lines := map[string]int{}
	model := l.file.model
	if at := l.file.doc.Root.Get("flow"); at != nil && at.Kind == strict.List && len(at.Items) == 0 {
		l.problems.Add(at, "the flow is empty", "a job needs at least one step")
	}
	for i := range model.Flow {
		m := &model.Flow[i]
		at := m.Node.Get("step")
		if at == nil || at.Kind != strict.Scalar || at.Empty || at.Bad {
			continue // reported by the decoder, or an element of a later version
		}
		switch {
		case m.Step == "" && at.Text != "":
			continue // reported: it has ${...}
		case !identifier.MatchString(m.Step):
			l.problems.Add(at, fmt.Sprintf("the step name %q is no identifier", m.Step), identifierHint)
		case slices.Contains(reserved(), m.Step):
			l.problems.Add(at, fmt.Sprintf("a step cannot be named %s", m.Step), "end, fail and stop are where a flow ends")
		case lines[m.Step] > 0:
			l.problems.Add(at, fmt.Sprintf("there are two steps named %s", m.Step), fmt.Sprintf("the other one is in line %d", lines[m.Step]))
			continue
		}
		lines[m.Step] = at.Line
		l.stepNames = append(l.stepNames, m.Step)
		l.file.steps = append(l.file.steps, &stepDef{name: m.Step, model: m})
	}
}

func (l *loader) checkStep(s *stepDef) {
	m := s.model
	switch {
	case m.Chunk != nil && m.Tasklet != nil:
		l.problems.Add(m.Node.KeyOf("tasklet"), fmt.Sprintf("step %s has a chunk and a tasklet", s.name), "make it two steps")
	case m.Node.Get("chunk") == nil && m.Node.Get("tasklet") == nil:
		l.problems.Add(m.Node.KeyOf("step"), fmt.Sprintf("step %s does nothing", s.name), "it needs `chunk` or `tasklet`")
	}
	l.positive(m.Node, "timeout", m.Timeout)
	if m.StartLimit != nil && *m.StartLimit < 1 {
		l.problems.Add(m.Node.Get("start_limit"), "start_limit must be at least 1", "")
	}
	if m.Transaction != nil {
		l.checkTransaction(m)
	}
	if m.Tasklet != nil {
		l.checkTasklet(s)
	}
	if m.Chunk != nil {
		l.checkChunk(s)
	} else if len(m.Listeners) > 0 && m.Tasklet != nil {
		l.problems.Add(m.Node.KeyOf("listeners"), "listeners are for chunk steps", "they are told of items and chunks")
	}
}

func (l *loader) positive(n *strict.Node, key string, d *time.Duration) {
	if d != nil && *d <= 0 {
		l.problems.Add(n.Get(key), key+" must be more than 0", "leave it out for none")
	}
}

func (l *loader) checkTransaction(m *elementModel) {
	t := m.Transaction
	l.positive(t.Node, "timeout", t.Timeout)
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
	s.tasklet = l.resolve(core.KindTasklet, s.model.Tasklet, s.name)
	u := s.tasklet
	if u == nil || !u.sound {
		return
	}
	l.fixedDatabase(u)
	if u.component.Types != nil {
		if _, err := u.typesOf(nil); err != nil {
			u.reportConfig(l.problems, err)
		}
	}
	if u.component.Config == nil {
		return
	}
	if f, ok := strict.FieldsOf(u.component.Config).Find("out"); ok && f.Type == reflect.TypeFor[core.ItemType]() {
		if out, _ := reflect.ValueOf(u.cfg).Elem().FieldByIndex(f.Index).Interface().(core.ItemType); out != nil {
			l.file.outs[s.name] = out.Schema()
		}
	}
}

func (l *loader) checkChunk(s *stepDef) {
	m := s.model.Chunk
	l.checkTolerance(s)
	s.reader = l.resolve(core.KindReader, m.Reader, s.name)
	complete := s.reader != nil && s.reader.sound
	for _, ref := range m.Processor {
		u := l.resolve(core.KindProcessor, ref, s.name)
		complete = complete && u != nil && u.sound
		s.processors = append(s.processors, u)
	}
	for _, ref := range m.Writer {
		s.writers = append(s.writers, l.resolve(core.KindWriter, ref, s.name))
	}
	for _, ref := range s.model.Listeners {
		s.listeners = append(s.listeners, l.resolve(core.KindListener, ref, s.name))
	}
	for _, u := range s.uses() {
		l.fixedDatabase(u)
	}
	if complete {
		l.checkPipeline(s)
	}
	l.checkWriters(s)
}

// checkPipeline follows the type of the items from stage to stage. Behind a stage
// that does not fit nothing more is known, so it ends there.
func (l *loader) checkPipeline(s *stepDef) {
	stages := append([]*use{s.reader}, s.processors...)
	var item core.ItemType
	for _, u := range stages {
		u.in = item
		out, ok := l.typesOf(u, item)
		if !ok {
			return
		}
		u.out, item = out, out
	}
	for _, u := range s.writers {
		if u != nil && u.sound {
			u.in = item
			l.typesOf(u, item)
		}
	}
}

// typesOf asks a stage for its output type. A stage that does not say passes on
// what it is handed.
func (l *loader) typesOf(u *use, in core.ItemType) (core.ItemType, bool) {
	if u.component.Types == nil {
		if u.kind == core.KindReader {
			l.problems.Add(u.ref.at, u.what+" does not say what items it reads", "its description in Go needs Types")
			return nil, false
		}
		return in, true
	}
	out, err := u.typesOf(in)
	if err != nil {
		u.reportConfig(l.problems, err)
		return out, out != nil
	}
	if out == nil && u.kind != core.KindWriter {
		l.problems.Add(u.ref.at, u.what+" does not say what items it hands on", "its description in Go must answer a type")
		return nil, false
	}
	return out, true
}

// fixedDatabase refuses a late-bound `database`: the step's transaction is fixed
// when the job is compiled.
func (l *loader) fixedDatabase(u *use) {
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
	for _, u := range s.writers {
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
