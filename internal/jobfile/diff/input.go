package diff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c *comparison) inputChanges(old, now *tree.Step) []Change {
	if old.Child != nil {
		return c.childChanges(old, now)
	}
	if old.Tasks != nil {
		return c.taskChanges(old, now)
	}
	changes := c.useChanges(old.Name, "has planned its partitions", old.Partitioner, now.Partitioner, tree.AnyKey)
	for i := range changes {
		changes[i].Kept = "the partitions that are planned"
	}
	if old.Partitioner == nil || c.hasCommittedParts(old) {
		changes = append(changes, c.useChanges(old.Name, didCommit, old.Reader, now.Reader, tree.AnyKey)...)
		return append(changes, c.writerChanges(old, now)...)
	}
	return changes
}

const didCommit = "has committed work"

func (c *comparison) writerChanges(old, now *tree.Step) []Change {
	if len(old.Writers) != len(now.Writers) {
		return []Change{{
			Step: old.Name, What: fmt.Sprintf("%s with %s, and has %s now", didCommit, writerCount(old), writerCount(now)), Refused: true,
			Place: c.place(now.Element.Model.Node),
		}}
	}
	var changes []Change
	for i := range old.Writers {
		counts := tree.IsTarget
		if old.Writers[i].Refills() != now.Writers[i].Refills() {
			counts = tree.IsTargetOrMode
		}
		changes = append(changes, c.useChanges(old.Name, didCommit, old.Writers[i], now.Writers[i], counts)...)
	}
	return changes
}

func writerCount(s *tree.Step) string {
	if len(s.Writers) == 1 {
		return "1 writer"
	}
	return fmt.Sprintf("%d writers", len(s.Writers))
}

func (c *comparison) useChanges(step, did string, old, now *tree.ComponentUse, counts func(yamlfile.Field) bool) []Change {
	refused := func(at *yamlfile.Node, format string, args ...any) Change {
		return Change{Step: step, What: did + " with " + fmt.Sprintf(format, args...), Refused: true, Place: c.place(at)}
	}
	switch {
	case old == nil || now == nil: // then the kind is another, or both are
		return nil
	case old.Component.Name != now.Component.Name:
		return []Change{refused(now.Ref.At, "the %s, and has the %s now", old.What, now.What)}
	}
	was, is := configTexts(c.before, old, c.params, counts), configTexts(c.after, now, c.params, counts)
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if was[key] != is[key] {
			changes = append(changes, refused(now.KeyNode(key), "%s: %s %s, and it is %s now", old.What, key, shown(key, was[key]), shown(key, is[key])))
		}
	}
	return changes
}

func (c *comparison) childChanges(old, now *tree.Step) []Change {
	refused := func(format string, args ...any) Change {
		return Change{Step: old.Name, What: "has started " + fmt.Sprintf(format, args...), Refused: true, Place: c.place(now.Element.Model.Node)}
	}
	var changes []Change
	if was, is := old.Child.Model.File, now.Child.Model.File; was != is {
		changes = append(changes, refused("the job file %s, and it is %s now", was, is))
	}
	if a, b := old.Child.File, now.Child.File; a != nil && b != nil && a.Name != b.Name { // it is part of the child's instance
		changes = append(changes, refused("job %s, and it is %s now", a.Name, b.Name))
	}
	was, is := parameterTexts(c.before, old.Child, c.params), parameterTexts(c.after, now.Child, c.params)
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was[name] != is[name] {
			change := refused("it with the parameter %s %s, and it is %s now", name, shown(name, orNone(was[name])), shown(name, orNone(is[name])))
			change.Kept = "the parameters that it was started with"
			changes = append(changes, change)
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

func parameterTexts(f *tree.File, child *tree.Child, params core.Parameters) map[string]string {
	texts, v := map[string]string{}, bind.Launch(f, params)
	for _, entry := range child.Model.Parameters {
		n := entry.Value.Node
		if n == nil {
			continue
		}
		texts[entry.Name] = n.Text
		for _, p := range child.Parameters {
			if p.Spec.Name != entry.Name || p.Late.AtStep {
				continue
			}
			p.Spec.Type = core.TypeString // a path as it is written
			if text, given, err := bind.ChildValue(f, v, p); err == nil && given {
				texts[entry.Name] = text
			}
		}
	}
	return texts
}

func (c *comparison) taskChanges(old, now *tree.Step) []Change {
	const did = "has submitted its tasks"
	changes := c.useChanges(old.Name, did, old.Reader, now.Reader, tree.AnyKey)
	refuse := func(at *yamlfile.Node, what string) {
		changes = append(changes, Change{Step: old.Name, What: did + what, Refused: true, Place: c.place(at)})
	}
	was, is := old.Tasks.Model, now.Tasks.Model
	if was.Handler != is.Handler {
		refuse(is.Node.Find("handler"), fmt.Sprintf(" for the handler %s, and it is %s now", was.Handler, is.Handler))
	}
	if (old.Reader == nil || now.Reader == nil) && nodeText(was.Items.Node) != nodeText(is.Items.Node) {
		refuse(is.Node.Find("items"), " with other items")
	}
	if was.Key != is.Key || was.After != is.After {
		refuse(is.Node, " in another order (key, after)")
	}
	if was.Budget.Limits() != is.Budget.Limits() {
		refuse(is.Node.Find("budget"), " with another budget")
	}
	for i := range changes {
		changes[i].Kept = "the tasks that are submitted"
	}
	return changes
}
