package check

import (
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func (l *steps) checkTasks(s *tree.Step) {
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
	s.Tasks = &tree.Tasks{Model: m.Tasks, Late: map[*yamlfile.Node]*template.LateValue{}}
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

func (l *steps) checkPayload(s *tree.Step, n *yamlfile.Node) {
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

func (l *steps) checkTaskOrder(d *tree.Tasks) {
	m := d.Model
	for _, key := range []string{"key", "after"} {
		if at := m.Node.Get(key); at != nil && at.Kind == yamlfile.Scalar && !at.Empty && strings.TrimSpace(at.Text) == "" {
			l.problems.Add(at, key+": the name is empty", "it is a field of each item")
			return
		}
	}
	switch {
	case m.After != "" && m.Key == "":
		l.problems.Add(m.Node.KeyOf("after"), "after needs the key \"key\"", "the field of each item that names its task, such as key: name")
	case m.After != "" && m.Key == m.After:
		l.problems.Add(m.Node.Get("after"), fmt.Sprintf("key and after are both the field %s", m.After), "key names the task, after lists the tasks that it waits for")
	case m.Key != "":
		l.checkLiteralOrder(d)
	}
}

func (l *steps) checkLiteralOrder(d *tree.Tasks) {
	m, sub := d.Model, task.Submission{}
	for _, n := range m.Items.List {
		if n.Kind != yamlfile.Map {
			if n.Kind != yamlfile.Scalar || d.Late[n] == nil || len(d.Late[n].Holes) == 0 {
				l.problems.Add(n, fmt.Sprintf("the item is not a map, so it has no field %s", m.Key), "write {"+m.Key+": ..., ...}")
			}
			return
		}
		key, known := literalKey(d, n.Get(m.Key))
		after, alsoKnown := literalKeys(d, n.Get(m.After))
		if !known || !alsoKnown {
			return // the submission finds out
		}
		sub.Tasks = append(sub.Tasks, task.Spec{Key: key, After: after})
	}
	_, err := model.TaskOrder(sub)
	for _, err := range flatten(err) {
		if wrong, ok := errors.AsType[*model.TaskOrderError](err); ok {
			l.problems.Add(m.Items.List[wrong.Task], wrong.Text, "")
		}
	}
}

func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func literalKey(d *tree.Tasks, n *yamlfile.Node) (key string, known bool) {
	if n == nil || n.Kind == yamlfile.Scalar && n.Empty {
		return "", true
	}
	if n.Kind != yamlfile.Scalar || d.Late[n] == nil || len(d.Late[n].Holes) > 0 {
		return "", false
	}
	return d.Late[n].Literal(), true
}

func literalKeys(d *tree.Tasks, n *yamlfile.Node) (keys []string, known bool) {
	if n != nil && n.Kind == yamlfile.List {
		for _, item := range n.Items {
			key, known := literalKey(d, item)
			if !known {
				return nil, false
			}
			keys = append(keys, key)
		}
		return keys, true
	}
	text, known := literalKey(d, n)
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys, known
}
