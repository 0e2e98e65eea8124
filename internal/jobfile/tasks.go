package jobfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// Tasks runs the steps of tasks: a *runtime.StepTasks.
type Tasks interface {
	step.TaskGroups
	HandlerTypes
	// HandlerWarnings returns warnings if only workers execute tasks of the type, and none of the live ones
	// does.
	HandlerWarnings(ctx context.Context, handler string) (warnings []string, err error)
	// GiveUp cancels the unfinished groups of a job instance that does not continue.
	GiveUp(ctx context.Context, instance core.JobInstanceID, reason string) error
}

// tasksDef is the checked work of a step of tasks. The reader of its items is the step's.
type tasksDef struct {
	model *tasksModel
	// late are the values of the list with ${...} in them.
	late map[*yamlfile.Node]*lateValue
}

// checkTasks checks `tasks`, and refuses keys that have no meaning in such a step.
func (l *loader) checkTasks(s *stepDef) {
	m := s.model
	for key, why := range map[string]string{
		"partition":   "each of its items is a task, which is the part of a worker",
		"timeout":     "budget: {deadline: ...} bounds the tasks",
		"transaction": "its tasks have transactions of their own",
	} {
		if m.Node.Get(key) != nil {
			l.problems.Add(m.Node.KeyOf(key), fmt.Sprintf("%s is not for a step of tasks", key), why)
		}
	}
	s.tasks = &tasksDef{model: m.Tasks, late: map[*yamlfile.Node]*lateValue{}}
	l.checkBudget(m.Tasks.Budget)
	s.on = l.on(m.Tasks.On, true, nil)
	if at := m.Tasks.Node.Get("handler"); at != nil && at.Kind == yamlfile.Scalar && strings.TrimSpace(at.Text) == "" && !at.Empty {
		l.problems.Add(at, "handler: the name is empty", "it is the type of the tasks, such as shell")
	}
	for _, n := range m.Tasks.Items.list {
		l.checkPayload(s, n)
	}
	if ref := m.Tasks.Items.ref; ref != nil {
		s.reader = l.resolve(registry.KindReader, ref, s.location())
		l.checkDatabaseFixed(s.reader)
	}
	if u := s.reader; u != nil && u.valid {
		if out, ok := l.checkOutputType(u, nil); ok {
			u.out = out
		}
	}
	l.checkTaskOrder(s.tasks)
	l.file.outs[s.name] = taskResults()
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
func (l *loader) checkPayload(s *stepDef, n *yamlfile.Node) {
	for _, item := range n.Items {
		l.checkPayload(s, item)
	}
	for _, e := range n.Entries {
		l.checkPayload(s, e.Value)
	}
	if n.Kind != yamlfile.Scalar || n.Bad {
		return
	}
	t, err := parseTemplate(n.Text)
	if err != nil {
		reportTemplate(l.problems, n, "items", err)
		return
	}
	late, in := &lateValue{template: t}, l.scope(s.location())
	for i := range t.holes {
		h := &t.holes[i]
		if h.prog, err = compileHole(l.problems, n, *h, in); err != nil {
			return // reported
		}
		late.atStep = late.atStep || needsStep(h.prog)
	}
	s.tasks.late[n] = late
}

func (f *File) payload(s *stepDef, v *values, n *yamlfile.Node) (any, error) {
	return jsonTree(n, func(n *yamlfile.Node) (any, error) {
		value, err := payloadScalar(v, n, s.tasks.late[n])
		if err != nil {
			return nil, fmt.Errorf("%s: items: %w", f.location(n), err)
		}
		return value, nil
	})
}

// jsonTree makes a value for encoding/json of a tree; scalar returns the values of its scalars.
func jsonTree(n *yamlfile.Node, scalar func(n *yamlfile.Node) (any, error)) (any, error) {
	switch n.Kind {
	case yamlfile.List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			value, err := jsonTree(item, scalar)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case yamlfile.Map:
		object := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			value, err := jsonTree(e.Value, scalar)
			if err != nil {
				return nil, err
			}
			object[e.Key.Text] = value
		}
		return object, nil
	case yamlfile.Scalar:
	}
	return scalar(n)
}

// payloadScalar is a number, a bool or null if the text is written like one of JSON, without quotes; a text
// that is one ${...} keeps its type.
func payloadScalar(v *values, n *yamlfile.Node, late *lateValue) (any, error) {
	switch {
	case late == nil: // reported
		return n.Text, nil
	case n.Empty:
		return nil, nil
	case len(late.holes) == 0 && !n.IsQuoted() && json.Valid([]byte(n.Text)):
		return json.RawMessage(n.Text), nil
	case len(late.holes) == 0:
		return late.literal(), nil
	case !late.whole():
		value, _, err := v.render(late, false)
		return value.Text, err
	}
	x, err := v.eval(late.holes[0])
	switch x.(type) {
	case nil, bool, int64, float64, string:
		return x, err
	}
	return textOf(x), err
}

// payloads are the payloads of the list, as far as they are known at launch.
func (f *File) payloads(s *stepDef, v *values) ([]json.RawMessage, error) {
	payloads := make([]json.RawMessage, 0, len(s.tasks.model.Items.list))
	for _, n := range s.tasks.model.Items.list {
		if !v.atStep && s.tasks.isLate(n) {
			continue
		}
		value, err := f.payload(s, v, n)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: items: %w", f.location(n), err)
		}
		payloads = append(payloads, text)
	}
	return payloads, nil
}

func (d *tasksDef) isLate(n *yamlfile.Node) bool {
	return d.late[n] != nil && d.late[n].atStep || slices.ContainsFunc(n.Items, d.isLate) ||
		slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return d.isLate(e.Value) })
}

// tasks compiles a step of tasks.
func (c *compiler) tasks(s *stepDef, a builder, config step.TasksConfig) (model.Step, error) {
	if c.deps.Tasks == nil {
		return nil, errors.New("this application cannot run a step of tasks")
	}
	config.On = s.on
	config.Name, config.Handler, config.Budget, config.Groups = s.name, s.tasks.model.Handler, s.tasks.model.Budget.budget(), c.deps.Tasks
	config.Key, config.After = s.tasks.model.Key, s.tasks.model.After
	config.Items = func(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error) {
		if s.reader == nil {
			return c.file.payloads(s, c.file.viewValues(run.View()))
		}
		reader, err := one[item.Reader](ctx, a.forRun(run), run.View(), s.reader)
		if err != nil {
			return nil, err
		}
		return readPayloads(ctx, reader, s.reader.out)
	}
	return step.NewTasks(config)
}

// readPayloads reads all items, as JSON documents.
func readPayloads(ctx context.Context, reader item.Reader, of item.Type) (payloads []json.RawMessage, err error) {
	var documents payloadWriter
	writer, err := of.ToDocuments(&documents)
	if err != nil {
		return nil, err
	}
	component := reader.Component()
	if closer, ok := component.(item.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
	}
	if opener, ok := component.(item.Opener); ok {
		if err := opener.Open(ctx, nil); err != nil {
			return nil, err
		}
	}
	const atOnce = 1000
	items := reader.NewItems(atOnce)
	for ended := false; !ended; {
		items.Reset()
		err := reader.Fill(ctx, items, atOnce)
		if ended = err == io.EOF; err != nil && !ended { //nolint:errorlint // the end is io.EOF itself
			return nil, fmt.Errorf("item %d: %w", len(documents)+items.Len()+1, err)
		}
		if err := writer.Write(ctx, items); err != nil {
			return nil, err
		}
		if len(documents) > step.MaxTasks {
			break // the step refuses them
		}
	}
	return documents, nil
}

// payloadWriter keeps documents.
type payloadWriter []json.RawMessage

// WriteDocuments implements item.DocumentWriter.
func (w *payloadWriter) WriteDocuments(_ context.Context, docs [][]byte) error {
	for _, doc := range docs {
		*w = append(*w, bytes.Clone(doc))
	}
	return nil
}

// taskChanges compares the inputs from which a step has made its tasks.
func (c *comparison) taskChanges(old, now *stepDef) []Change {
	const did = "has submitted its tasks"
	changes := c.useChanges(old.name, did, old.reader, now.reader, anyKey)
	refuse := func(at *yamlfile.Node, what string) {
		changes = append(changes, Change{Step: old.name, What: did + what, Refused: true, Place: c.place(at)})
	}
	was, is := old.tasks.model, now.tasks.model
	if was.Handler != is.Handler {
		refuse(is.Node.Find("handler"), fmt.Sprintf(" for the handler %s, and it is %s now", was.Handler, is.Handler))
	}
	if (old.reader == nil || now.reader == nil) && nodeText(was.Items.node) != nodeText(is.Items.node) {
		refuse(is.Node.Find("items"), " with other items")
	}
	if was.Key != is.Key || was.After != is.After {
		refuse(is.Node, " in another order (key, after)")
	}
	if was.Budget.budget() != is.Budget.budget() {
		refuse(is.Node.Find("budget"), " with another budget")
	}
	for i := range changes {
		changes[i].Kept = "the tasks that are submitted"
	}
	return changes
}
