package operator

import (
	"fmt"
	"maps"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Undeclared parameters are removed, except those that the incrementer has set.
func nextParameters(j *model.Job, last *core.JobExecution, given core.Parameters) (core.Parameters, error) {
	made, err := j.Incrementer(last, given)
	if err != nil {
		return core.Parameters{}, err
	}
	if made, err = inherited(j, last, made); err != nil || len(j.Parameters) == 0 { // a job of Go code that checks them itself
		return made, err
	}
	declared := map[string]bool{}
	for _, spec := range j.Parameters {
		declared[spec.Name] = true
	}
	texts := map[string]string{}
	var others []core.Parameter
	for _, p := range made.All() {
		if !declared[p.Name] {
			if last == nil {
				others = append(others, p)
			} else if had, ok := last.Params.Get(p.Name); !ok || !same(had, p) {
				others = append(others, p)
			}
			continue
		}
		texts[p.Name] = p.Text()
	}
	params, err := job.ValidateParameters(j.Parameters, texts)
	if err != nil {
		return core.Parameters{}, withInherit(j, last, texts, err)
	}
	return core.NewParameters(append(params.All(), others...)...)
}

func inherited(j *model.Job, last *core.JobExecution, made core.Parameters) (core.Parameters, error) {
	if last == nil {
		return made, nil
	}
	list := made.All()
	for _, name := range j.Inherit {
		had, was := last.Params.Get(name)
		if _, is := made.Get(name); was && !is {
			list = append(list, had)
		}
	}
	return core.NewParameters(list...)
}

func withInherit(j *model.Job, last *core.JobExecution, texts map[string]string, err error) error {
	var lacking []string
	for _, spec := range j.Parameters {
		if last == nil || !spec.Required {
			continue
		}
		_, given := texts[spec.Name]
		if _, had := last.Params.Get(spec.Name); had && !given {
			lacking = append(lacking, spec.Name)
		}
	}
	if len(lacking) == 0 {
		return err
	}
	return fmt.Errorf("%w (the next instance keeps only inherited parameters: set it, or write inherit: [%s])", err, strings.Join(lacking, ", "))
}

// parametersAgain: parameters may have been added since, but the instance must
// be the same.
func parametersAgain(j *model.Job, e *core.JobExecution, changed map[string]string) (core.Parameters, error) {
	if len(j.Parameters) == 0 && len(changed) == 0 && j.Definition.Text == "" { // a job of Go code that checks them itself
		return e.Params, nil
	}
	params, err := declaredAgain(j, e, changed)
	if err != nil {
		return params, &Refusal{Reason: refusal.Parameters, Execution: e.ID,
			Err: fmt.Errorf("the parameters of execution %d no longer fit the job file: %w", e.ID, err)}
	}
	if params.Key() != e.Params.Key() {
		return params, &Refusal{Reason: refusal.Parameters, Execution: e.ID,
			Err: fmt.Errorf("the identifying parameters of the job file have changed since execution %d, which had %s: a restart would run another instance",
				e.ID, identifyingText(e.Params))}
	}
	return params, nil
}

func declaredAgain(j *model.Job, e *core.JobExecution, changed map[string]string) (core.Parameters, error) {
	given := map[string]string{}
	var number int64
	for _, q := range e.Params.All() {
		if n, ok := q.Value.(int64); ok && q.Name == core.AgainName {
			number = n
			continue
		}
		if q.Name == redriveName {
			continue
		}
		given[q.Name] = q.Text()
	}
	maps.Copy(given, changed)
	params, err := job.ValidateParameters(j.Parameters, given)
	if err != nil {
		return params, err
	}
	if params, err = asStored(params, e, changed); err != nil {
		return params, err
	}
	return withAgain(params, number)
}
