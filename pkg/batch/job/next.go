package job

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// redrivesPage is how many executions are read to find one that is no redrive.
const redrivesPage = 20

// next is the question for the next instance of a job.
type next struct {
	job   *core.Job
	last  *core.JobExecution // the newest that is no redrive; nil: there is none
	texts map[string]string  // given
	given core.Parameters
}

func (o *Operator) next(ctx context.Context, name string, given map[string]string) (*next, error) {
	j, err := o.job(ctx, name)
	if err != nil {
		return nil, err
	}
	if j.Incrementer == nil {
		return nil, fmt.Errorf("job %s: %w", name, core.ErrNoIncrementer)
	}
	n := &next{job: j, texts: given}
	if n.given, err = ValidateParameters(optional(j.Parameters), given); err != nil {
		return nil, fmt.Errorf("next instance of job %s: %w", name, err)
	}
	if n.last, err = o.newest(ctx, name); err != nil {
		return nil, err
	}
	return n, nil
}

// optional declares the same parameters without defaults, and requires none: so
// that what was not given is left to the incrementer.
func optional(specs []core.ParameterSpec) []core.ParameterSpec {
	list := make([]core.ParameterSpec, len(specs))
	for i, spec := range specs {
		spec.Default, spec.Required = nil, false
		list[i] = spec
	}
	return list
}

func (o *Operator) newest(ctx context.Context, name string) (*core.JobExecution, error) {
	filter := core.ExecutionFilter{JobName: name, Limit: redrivesPage}
	for {
		page, err := o.config.Repository.Executions(ctx, filter)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if page[i].RedriveOf == 0 {
				return &page[i], nil
			}
		}
		if len(page) < filter.Limit {
			return nil, nil
		}
		filter.Before = page[len(page)-1].ID
	}
}

// resumes reports whether the newest instance is the one that is meant, and has not
// completed. What runs is for the launch to judge.
func (n *next) resumes() bool {
	if n.last == nil {
		return false
	}
	switch n.last.Status {
	case core.StatusCompleted, core.StatusAbandoned:
		return false
	case core.StatusFailed, core.StatusStopped:
		if !n.job.Restartable {
			return false
		}
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping, core.StatusUnknown:
	}
	for _, p := range n.given.All() {
		if had, ok := n.last.Params.Get(p.Name); p.Identifying && (!ok || !same(had, p)) {
			return false
		}
	}
	return true
}

// again are the parameters of the newest instance, with those given.
func (n *next) again() (core.Parameters, error) { return following(n.last, n.given, nil) }

func same(a, b core.Parameter) bool {
	x, err := a.Canonical()
	if err != nil {
		return false
	}
	y, err := b.Canonical()
	return err == nil && a.Type == b.Type && x == y
}

// parameters asks the incrementer, and holds its answer against the declarations.
func (n *next) parameters() (core.Parameters, error) {
	made, err := n.job.Incrementer(n.last, n.given)
	if err != nil {
		return core.Parameters{}, err
	}
	if len(n.job.Parameters) == 0 { // a job of Go code that checks them itself
		return made, nil
	}
	declared := map[string]bool{}
	for _, spec := range n.job.Parameters {
		declared[spec.Name] = true
	}
	texts := map[string]string{}
	var others []core.Parameter
	for _, p := range made.All() {
		if !declared[p.Name] {
			if had, ok := parameterOf(n.last, p.Name); !ok || !same(had, p) {
				others = append(others, p)
			}
			continue
		}
		if texts[p.Name], err = p.Canonical(); err != nil {
			return core.Parameters{}, &core.ParameterError{Name: p.Name, Err: err}
		}
	}
	params, err := ValidateParameters(n.job.Parameters, texts)
	if err != nil {
		return core.Parameters{}, err
	}
	return core.NewParameters(append(params.All(), others...)...)
}
