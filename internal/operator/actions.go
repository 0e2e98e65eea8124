package operator

import (
	"cmp"
	"errors"
	"path/filepath"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func newInstance(e *core.JobExecution) []Action {
	if e.Definition.Path == "" || e.RedriveOf != 0 {
		return nil
	}
	return []Action{launchAction(refusal.ActAgain, e.Definition.Path, e.Params, nil)}
}

func launchAction(kind refusal.ActionKind, file string, params core.Parameters, specs []core.ParameterSpec) Action {
	a := Action{Kind: kind, File: file, Params: map[string]string{}}
	defaults := map[string]any{}
	for _, spec := range specs {
		if p, err := spec.Place(spec.Default); err == nil {
			defaults[spec.Name] = p.Value
		}
	}
	for _, p := range params.All() {
		if p.Name == core.AgainName || p.Name == redriveName || p.Value == defaults[p.Name] {
			continue
		}
		a.Params[p.Name] = cmp.Or(p.Path, p.Text())
		if p.Path != "" {
			a.Paths = append(a.Paths, p.Name)
		}
	}
	return a
}

func afterFormer(e *ports.FormerInstanceError, again Action) []Action {
	actions := []Action{{Kind: refusal.ActShow, Execution: e.Execution, Status: e.Status}}
	if e.Status == core.StatusFailed || e.Status == core.StatusStopped {
		actions = append(actions, Action{Kind: refusal.ActRestart, Execution: e.Execution, Status: e.Status})
	}
	if e.Taken && e.Status == core.StatusCompleted {
		actions = append(actions, again)
	}
	return actions
}

func otherParameter(j *model.Job, params core.Parameters) (core.Parameters, bool) {
	for _, spec := range j.Parameters {
		p, ok := params.Get(spec.Name)
		if !ok || !spec.Identifying {
			continue
		}
		next, ok := nextValue(spec, p.Value)
		if !ok {
			continue
		}
		var list []core.Parameter
		for _, other := range params.All() {
			if other.Name == spec.Name {
				other.Value = next
			}
			list = append(list, other)
		}
		changed, err := core.NewParameters(list...)
		return changed, err == nil
	}
	return core.Parameters{}, false
}

func nextValue(spec core.ParameterSpec, value any) (any, bool) {
	var next any
	switch v := value.(type) {
	case int64:
		next = v + 1
	case core.Date:
		next = v + 1
	case time.Time:
		next = v.Add(24 * time.Hour)
	default:
		text, err := core.Parameter{Name: spec.Name, Type: spec.Type, Value: value}.Canonical()
		for i, allowed := range spec.Enum {
			if err == nil && allowed == text && len(spec.Enum) > 1 {
				return spec.Enum[(i+1)%len(spec.Enum)], true
			}
		}
		return nil, false
	}
	return next, job.CheckParameter(spec, next) == nil
}

func withAction(err error, id core.JobExecutionID, a Action) error {
	if r, is := errors.AsType[*Refusal](err); is {
		return &Refusal{Reason: r.Reason, Execution: id, Err: r.Err, Actions: append(r.Actions[:len(r.Actions):len(r.Actions)], a)}
	}
	return err
}

func compareActions(id core.JobExecutionID, was, now core.Definition, path string) []Action {
	if len(was.Files) == 0 {
		return []Action{{Kind: refusal.ActCompare, Execution: id, File: path}}
	}
	var actions []Action
	if was.Text != now.Text {
		actions = append(actions, Action{Kind: refusal.ActCompare, Execution: id, File: path, Name: mainName(was)})
	}
	for _, f := range was.Files {
		if other, found := now.File(f.Name); !found || other.Text != f.Text {
			actions = append(actions, Action{Kind: refusal.ActCompare, Execution: id, File: cmp.Or(other.Path, f.Path, f.Name), Name: f.Name})
		}
	}
	return actions
}

func mainName(d core.Definition) string {
	if d.Path == "" {
		return "job"
	}
	return filepath.Base(d.Path)
}
