package check

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// checkTasks checks `tasks`, and refuses keys that have no meaning in such a step.
func (l *steps) checkTasks(s *model.Step) {
	m := s.Model
	for key, why := range map[string]string{
		"partition":   "each of its items is a task, which is the part of a worker",
		"timeout":     "budget: {deadline: ...} bounds the tasks",
		"transaction": "its tasks have transactions of their own",
	} {
		if m.Node.Get(key) != nil {
			l.problems.Add(m.Node.KeyOf(key), fmt.Sprintf("%s is not for a step of tasks", key), why)
		}
	}
	s.Tasks = &model.Tasks{Model: m.Tasks, Late: map[*yamlfile.Node]*template.LateValue{}}
	l.checkBudget(m.Tasks.Budget)
	s.On = l.on(m.Tasks.On, true, nil)
	if at := m.Tasks.Node.Get("handler"); at != nil && at.Kind == yamlfile.Scalar && strings.TrimSpace(at.Text) == "" && !at.Empty {
		l.problems.Add(at, "handler: the name is empty", "it is the type of the tasks, such as shell")
	}
	for _, n := range m.Tasks.Items.List {
		l.checkPayload(s, n)
	}
	if ref := m.Tasks.Items.Ref; ref != nil {
		s.Reader = l.resolve(registry.KindReader, ref, locationOf(s))
		l.checkDatabaseFixed(s.Reader)
	}
	if u := s.Reader; u != nil && u.Valid {
		if out, ok := l.checkOutputType(u, nil); ok {
			u.Out = out
		}
	}
	l.checkTaskOrder(s.Tasks)
	l.file.Outs[s.Name] = taskResults()
}

// taskResults are the named results of a step of tasks.
func taskResults() *row.Schema {
	var fields []row.Field
	for _, name := range []string{"group", "total", "succeeded", "failed", "canceled"} {
		fields = append(fields, row.Field{Name: name, Kind: row.Int})
	}
	schema, err := row.NewSchema(append(fields, row.Field{Name: "results", Kind: row.String, Nullable: true})...)
	if err != nil {
		panic(err) // the names above are wrong
	}
	return schema
}

// checkPayload compiles the texts in a payload.
func (l *steps) checkPayload(s *model.Step, n *yamlfile.Node) {
	for _, item := range n.Items {
		l.checkPayload(s, item)
	}
	for _, e := range n.Entries {
		l.checkPayload(s, e.Value)
	}
	if n.Kind != yamlfile.Scalar || n.Bad {
		return
	}
	t, err := template.Parse(n.Text)
	if err != nil {
		template.Report(l.problems, n, "items", err)
		return
	}
	late, in := &template.LateValue{Template: t}, l.scope(locationOf(s))
	for i := range t.Holes {
		h := &t.Holes[i]
		if h.Prog, err = template.CompileHole(l.problems, n, *h, in); err != nil {
			return // reported
		}
		late.AtStep = late.AtStep || template.NeedsStep(h.Prog)
	}
	s.Tasks.Late[n] = late
}
