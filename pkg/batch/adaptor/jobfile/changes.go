package jobfile

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Change is a difference between two definitions of a job, for an instance that began
// with the first one and continues with the second.
type Change struct {
	// Step is the step or child job; empty: the file as a whole.
	Step string
	// What is a sentence without its subject: "is new".
	What string
	// Refused says that a restart needs consent: completed work depends on what changed.
	Refused bool
}

// ChangedError refuses to restart an instance because the job file has changed in work
// that was already done (rule F4).
type ChangedError struct {
	Execution core.JobExecutionID
	Changes   []Change
}

// Error names the changes that are refused.
func (e *ChangedError) Error() string {
	var texts []string
	for _, c := range e.Changes {
		if c.Refused {
			texts = append(texts, c.String())
		}
	}
	return fmt.Sprintf("the job file has changed since execution %d in what a restart relies on: %s", e.Execution, strings.Join(texts, "; "))
}

// String is the change as a sentence.
func (c Change) String() string {
	if c.Step == "" {
		return c.What
	}
	return "step " + c.Step + " " + c.What
}

// Changes compares the file with the definition of the instance's last execution,
// if that is another one.
func (f *File) Changes(ctx context.Context, last *core.JobExecution, history core.Explorer, params core.Parameters, reg *registry.Registry) ([]Change, error) {
	if last.Definition.Hash == f.Definition().Hash || last.Definition.Text == "" { // that of a job made in Go
		return nil, nil
	}
	steps, err := history.LastSteps(ctx, last.InstanceID, last.AnewSince())
	if err != nil {
		return nil, fmt.Errorf("read the steps of the last execution: %w", err)
	}
	before, err := f.Earlier(last.Definition, reg)
	if err != nil { // such as a component that the application no longer has
		text := strings.Join(strings.Fields(err.Error()), " ")
		return []Change{{What: "the file as it was cannot be read any more, so that nobody can tell what is different: " + text, Refused: true}}, nil
	}
	return Compare(before, f, params, steps), nil
}

// checkRestart refuses changes of work that was already done.
func (c *compiler) checkRestart(ctx context.Context, last *core.JobExecution, history core.Explorer, params core.Parameters) error {
	changes, err := c.file.Changes(ctx, last, history, params, c.deps.Registry)
	if err == nil && slices.ContainsFunc(changes, func(c Change) bool { return c.Refused }) {
		err = &ChangedError{Execution: last.ID, Changes: changes}
	}
	return err
}

// Compare says what is different for a restart (rule F4): a step that completed
// must keep its name and its kind; one that began and did not complete must keep its
// kind and its input: the reader of a chunk step and the partitioner with their configs,
// the name of the file and the parameters of a child job: what is in that file is judged by
// the launch of the child. Configs are compared as the launch with the parameters binds them.
// Everything else may change. history are the newest executions of the instance's
// steps; what runs in `finally` begins anew in each execution and is not compared.
func Compare(before, after *File, params core.Parameters, history map[string]core.StepHistory) []Change {
	var changes []Change
	for _, s := range before.steps {
		if s.element.list.finally {
			continue
		}
		last, ran := history[s.name]
		now := after.stepNamed(s.name)
		switch {
		case now == nil && ran && last.Last.Status == core.StatusCompleted:
			changes = append(changes, Change{s.name, "has completed, and is not in the file any more", true})
		case now == nil && ran:
			changes = append(changes, Change{s.name, "has begun and not completed, and is not in the file any more", true})
		case now == nil:
			changes = append(changes, Change{Step: s.name, What: "is not in the file any more"})
		case ran && s.kind() != now.kind():
			changes = append(changes, Change{s.name, fmt.Sprintf("was a %s, and is a %s", s.kind(), now.kind()), true})
		case ran && last.Last.Status != core.StatusCompleted && last.Last.Status != core.StatusAbandoned:
			changes = append(changes, inputChanges(before, after, s, now, params)...)
		}
		if now == nil || slices.ContainsFunc(changes, func(c Change) bool { return c.Step == s.name }) {
			continue
		}
		if what := otherChange(s, now); what != "" {
			if ran && last.Last.Status == core.StatusCompleted && !now.allowsStart() {
				what += "; it has completed and does not run again"
			}
			changes = append(changes, Change{Step: s.name, What: what})
		}
	}
	for _, s := range after.steps {
		if before.stepNamed(s.name) == nil && !s.element.list.finally {
			changes = append(changes, Change{Step: s.name, What: "is new"})
		}
	}
	return changes
}

// otherChange says what is different of a step that a restart may run; empty: nothing.
func otherChange(old, now *stepDef) string {
	switch {
	case old.text() != now.text():
		return "is different"
	case old.childHash() != now.childHash():
		return "has a job file that is different, which the launch of that job judges"
	}
	return ""
}

// childHash is the hash of the definition of a child job; empty: it is another step, or a
// job that cannot be read any more.
func (s *stepDef) childHash() string {
	if s.child == nil || s.child.file == nil {
		return ""
	}
	return s.child.file.Definition().Hash
}

func (f *File) stepNamed(name string) *stepDef {
	for _, s := range f.steps {
		if s.name == name && !s.element.list.finally {
			return s
		}
	}
	return nil
}

// kind is what sort of step it is, as the history has it.
func (s *stepDef) kind() string {
	switch {
	case s.child != nil:
		return "child job"
	case s.partitioner != nil:
		return "partitioned step"
	case s.tasklet != nil:
		return "tasklet step"
	}
	return "chunk step"
}

func (s *stepDef) allowsStart() bool {
	return s.child == nil && s.model.AllowStartIfComplete
}

// text is the step as it is written, without its layout.
func (s *stepDef) text() string { return nodeText(s.element.model.node) }

// inputChanges compares the input of an unfinished step.
func inputChanges(before, after *File, old, now *stepDef, params core.Parameters) []Change {
	if old.child != nil {
		return childChanges(before, after, old, now, params)
	}
	changes := useChanges(before, after, old.name, old.partitioner, now.partitioner, params)
	return append(changes, useChanges(before, after, old.name, old.reader, now.reader, params)...)
}

func useChanges(before, after *File, step string, old, now *componentUse, params core.Parameters) []Change {
	switch {
	case old == nil || now == nil: // then the kind is another, or both are
		return nil
	case old.component.Name != now.component.Name:
		return []Change{{step, fmt.Sprintf("has begun with the %s, and has the %s now", old.what, now.what), true}}
	}
	was, is := before.configTexts(old, params), after.configTexts(now, params)
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if was[key] != is[key] {
			changes = append(changes, Change{step, fmt.Sprintf("has begun with %s: %s %s, and it is %s now", old.what, key, was[key], is[key]), true})
		}
	}
	return changes
}

func childChanges(before, after *File, old, now *stepDef, params core.Parameters) []Change {
	var changes []Change
	if was, is := old.child.model.File, now.child.model.File; was != is {
		changes = append(changes, Change{old.name, fmt.Sprintf("has begun with the job file %s, and it is %s now", was, is), true})
	}
	was, is := before.parameterTexts(old.child, params), after.parameterTexts(now.child, params)
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was[name] != is[name] {
			changes = append(changes, Change{old.name, fmt.Sprintf("has begun with the parameter %s %s, and it is %s now", name, orNone(was[name]), orNone(is[name])), true})
		}
	}
	return changes
}

func orNone(text string) string {
	if text == "" {
		return "not given"
	}
	return text
}

// parameterTexts are the parameters of a child by name: the value if the launch knows
// it, else the expression.
func (f *File) parameterTexts(child *childDef, params core.Parameters) map[string]string {
	texts, v := map[string]string{}, f.launchValues(params)
	for _, entry := range child.model.Parameters {
		n := entry.Value.node
		if n == nil {
			continue
		}
		texts[entry.Name] = n.Text
		for _, p := range child.parameters {
			if p.spec.Name != entry.Name || p.late.atStep {
				continue
			}
			p.spec.Type = core.TypeString // a path as it is written
			if text, given, err := f.childValue(v, p); err == nil && given {
				texts[entry.Name] = text
			}
		}
	}
	return texts
}

// configTexts are the keys of a config with their values as texts, defaults
// included, as far as the launch knows them.
func (f *File) configTexts(u *componentUse, params core.Parameters) map[string]string {
	texts := map[string]string{}
	if u.component.Config == nil {
		return texts
	}
	cfg := reflect.ValueOf(f.config(u, f.launchValues(params), f.doc.NewCollector())).Elem()
	for _, field := range strict.FieldsOf(u.component.Config).Fields {
		text := valueText(cfg.FieldByIndex(field.Index))
		at := u.node.Get(field.Key)
		if field.Main && u.node.Kind != strict.Map {
			at = u.node
		}
		if at != nil && u.lateAtStep(at) {
			text = nodeText(at)
		}
		texts[field.Key] = text
	}
	return texts
}

// lateAtStep reports whether a value in the node is known only when the step
// starts.
func (u *componentUse) lateAtStep(n *strict.Node) bool {
	if late := u.late[n]; late != nil && late.atStep {
		return true
	}
	return slices.ContainsFunc(n.Items, u.lateAtStep) ||
		slices.ContainsFunc(n.Entries, func(e strict.Entry) bool { return u.lateAtStep(e.Value) })
}

// valueText returns equal texts for equal values of a config.
func valueText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case item.Type:
		if schema := x.Schema(); schema != nil {
			return valueText(reflect.ValueOf(schema.Fields()))
		}
		return x.GoType().String()
	case registry.SQL:
		return fmt.Sprintf("%q %v", x.String(), x.Args)
	case registry.Expression:
		return x.Text
	case string:
		return fmt.Sprintf("%q", x)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "none"
		}
		return valueText(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return "none"
		}
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				parts = append(parts, v.Type().Field(i).Name+": "+valueText(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, valueText(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
	}
	return fmt.Sprint(v.Interface())
}

// nodeText is a value of the file, without its layout: keys in order.
func nodeText(n *strict.Node) string {
	var parts []string
	switch n.Kind {
	case strict.List:
		for _, item := range n.Items {
			parts = append(parts, nodeText(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case strict.Map:
		for _, e := range n.Entries {
			parts = append(parts, e.Key.Text+": "+nodeText(e.Value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case strict.Scalar:
	}
	return fmt.Sprintf("%q", n.Text)
}
