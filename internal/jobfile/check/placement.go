package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const placementHint = "write labels of workers, such as {disk: eu1}, or the name of a worker"

func (l *checker) on(m *language.Placement, remote bool, names map[string]expression.Var) *core.Placement {
	if !l.needsRemote(m, remote) {
		return nil
	}
	return l.placement(m.Node, names)
}

func (l *checker) needsRemote(m *language.Placement, remote bool) bool {
	if m == nil || m.Node == nil {
		return false
	}
	if !remote {
		l.problems.Add(m.Node, "on selects workers, but the process of the job does the work", "add remote: true")
	}
	return remote
}

func (l *checker) placement(n *yamlfile.Node, names map[string]expression.Var) *core.Placement {
	p := &core.Placement{}
	switch {
	case n.Bad:
		return nil
	case n.Kind == yamlfile.Scalar && (n.Empty || n.Text == ""), n.Kind == yamlfile.Map && len(n.Entries) == 0:
		l.problems.Add(n, "on is empty", placementHint+", or leave it out: any worker does it")
		return nil
	case n.Kind == yamlfile.Scalar:
		p.Worker = n.Text
		if !l.placementText(n, names) {
			return nil
		}
	case n.Kind == yamlfile.Map:
		p.Labels = map[string]string{}
		for _, e := range n.Entries {
			if e.Value.Kind != yamlfile.Scalar || e.Value.Empty {
				if !e.Value.Bad {
					l.problems.Add(e.Value, "on: the label "+e.Key.Text+" has no value", "write {"+e.Key.Text+": VALUE}, such as {disk: eu1}")
				}
				return nil
			}
			if !l.placementText(e.Value, names) {
				return nil
			}
			p.Labels[e.Key.Text] = e.Value.Text
		}
	default:
		l.problems.Add(n, "on is a list", placementHint)
		return nil
	}
	if err := withoutHoles(*p).Check(); err != nil {
		l.problems.Add(n, "on: "+strings.ReplaceAll(err.Error(), "\n", "; "), placementHint)
		return nil
	}
	return p
}

func withoutHoles(p core.Placement) core.Placement {
	plain := core.Placement{Worker: language.PartHole.ReplaceAllString(p.Worker, "x")}
	for key, value := range p.Labels {
		if plain.Labels == nil {
			plain.Labels = map[string]string{}
		}
		plain.Labels[key] = language.PartHole.ReplaceAllString(value, "x")
	}
	return plain
}

func (l *checker) placementText(n *yamlfile.Node, names map[string]expression.Var) bool {
	if names == nil && strings.Contains(n.Text, "${") {
		l.problems.Add(n, "on takes texts as they are, without ${...}", "only the parts of a partition may have values of their own: on: {disk: \"${part.site}\"}")
		return false
	}
	if strings.Contains(language.PartHole.ReplaceAllString(n.Text, ""), "${") {
		l.problems.Add(n, "on of a partition takes ${part.NAME}, and no other expression", "such as {disk: \"${part.site}\"}")
		return false
	}
	for _, hole := range language.PartHole.FindAllStringSubmatch(n.Text, -1) {
		if _, known := names[hole[1]]; !known && len(names) > 0 {
			l.problems.Add(n, "on: a part has no value "+hole[1], yamlfile.Suggest(hole[1], slices.Sorted(maps.Keys(names))))
			return false
		}
	}
	return true
}

func (l *checker) checkSplitPlacement(e *tree.Element) {
	m := e.Model.Split
	if !l.needsRemote(m.On, m.Remote == language.RemoteTrue) {
		return
	}
	n := m.On.Node
	if n.Kind != yamlfile.List {
		if p := l.placement(n, nil); p != nil {
			for range e.Lists {
				e.On = append(e.On, p)
			}
		}
		return
	}
	if len(n.Items) != len(e.Lists) {
		l.problems.Add(n, fmt.Sprintf("on has %d placements, and the split %d branches", len(n.Items), len(e.Lists)), "write one for each branch, in their order, or one for all: on: {disk: eu1}")
		return
	}
	for _, item := range n.Items {
		e.On = append(e.On, l.placement(item, nil))
	}
}

func (l *checker) checkRemote(e *tree.Element) {
	m, child := e.Model.Job, e.Step.Child.File
	e.Step.Child.On = l.on(m.On, m.Remote == language.RemoteTrue, nil)
	if m.Remote != language.RemoteTrue || child == nil {
		return
	}
	if u := child.LocalComponent(); u != nil {
		l.problems.Add(m.Node.Get("remote"), fmt.Sprintf("remote: job %s has the %s, which works only in the process that runs the job", child.Name, u.What),
			"with auto, or without remote, the job runs in the process of this one")
	}
}

func (l *checker) checkRemoteSplits() {
	if l.file.Flow == nil {
		return
	}
	l.file.Flow.Walk(func(e *tree.Element) {
		if e.Kind != language.SplitKind {
			return
		}
		l.checkSplitPlacement(e)
		if e.Model.Split.Remote != language.RemoteTrue {
			return
		}
		at := e.Model.Node.Get("remote")
		if n := e.Model.Node.Get("parallel"); n != nil {
			l.problems.Add(n, fmt.Sprintf("parallel: the branches of split %s run on workers, whose slots limit how many run at once", e.Name),
				"parallel is for branches in the process of the job: remote: false")
		}
		if u := e.LocalComponent(); u != nil {
			l.problems.Add(at, fmt.Sprintf("remote: split %s has the %s, which works only in the process that runs the job", e.Name, u.What),
				"with auto, or without remote, the branches run in the process of the job")
		}
		for _, branch := range e.Lists {
			if inner, why := branch.WaitsForWorkers(); inner != nil {
				l.problems.Add(at, fmt.Sprintf("remote: split %s has %s in line %d, %s: a branch on workers cannot wait for workers", e.Name, inner.Text, inner.Line, why),
					"remove remote from the split or from the element in it")
				return
			}
		}
	})
}
