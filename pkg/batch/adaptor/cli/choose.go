package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// mayIncrement reports whether parameters that lack, or are wrong, may be made by an
// incrementer: what is wrong with them is known once it has been asked.
func (p *program) mayIncrement(l launch) bool { return l.next || l.file.Incrementer() != "" }

// chooseInstance returns the parameters of the instance that is meant.
func (p *program) chooseInstance(ctx context.Context, s *Session, j *core.Job, l launch) (core.Parameters, error) {
	switch {
	case l.given == nil:
		return l.params, nil
	case l.again:
		if l.invalid != nil {
			return core.Parameters{}, l.invalid
		}
		return nextInstance(ctx, s.Repository, j, l.params)
	case l.next:
		return p.nextParameters(ctx, s, j, l)
	case j.Incrementer != nil:
		return p.incremented(ctx, s, j, l)
	}
	return l.params, l.invalid
}

// nextParameters asks the incrementer.
func (p *program) nextParameters(ctx context.Context, s *Session, j *core.Job, l launch) (core.Parameters, error) {
	o, err := p.operator(s, j)
	if err != nil {
		return core.Parameters{}, err
	}
	params, err := o.NextParameters(ctx, j.Name, l.given)
	var wrong *core.ParameterError
	switch {
	case errors.Is(err, core.ErrNoIncrementer):
		return params, &exitError{code: ExitFailed, err: fmt.Errorf("job %s: %w", j.Name, core.ErrNoIncrementer), hints: []string{
			"give it one:     incrementer: NAME  (in " + l.path + ")",
			"a new instance:  " + p.command(runWords(l.path, givenWords(l.given), "--again")...),
		}}
	case errors.As(err, &wrong):
		return params, usage(err, "parameters:  "+p.app.Name+" run "+shellQuote(l.path)+" --help")
	}
	return params, err
}

// incremented is what run does for a job with an incrementer: the newest instance
// goes on if it has not completed and no other one was named, else there is a next
// one.
func (p *program) incremented(ctx context.Context, s *Session, j *core.Job, l launch) (core.Parameters, error) {
	last, err := newestExecution(ctx, s.Repository, j.Name)
	if err != nil {
		return core.Parameters{}, err
	}
	if last != nil && canGoOn(j, last.Status) && sameInstance(j, last.Params, l.given) {
		p.log.InfoContext(ctx, "the newest instance has not completed: it goes on", "execution", int64(last.ID), "status", string(last.Status))
		return parametersAgain(l.file, last, l.given)
	}
	return p.nextParameters(ctx, s, j, l)
}

// newestExecution is the newest execution of a job that is no redrive; nil: there is
// none.
func newestExecution(ctx context.Context, history core.Explorer, name string) (*core.JobExecution, error) {
	filter := core.ExecutionFilter{JobName: name, Limit: 20}
	for {
		page, err := history.Executions(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("find the newest execution: %w", err)
		}
		for _, e := range page {
			if e.RedriveOf == 0 {
				return &e, nil
			}
		}
		if len(page) < filter.Limit {
			return nil, nil
		}
		filter.Before = page[len(page)-1].ID
	}
}

// sameInstance reports whether the given texts are those of params, as far as they
// say which instance is meant.
func sameInstance(j *core.Job, params core.Parameters, given map[string]string) bool {
	for _, spec := range j.Parameters {
		text, ok := given[spec.Name]
		if !ok || !spec.Identifying {
			continue
		}
		value, err := core.ParseParameter(spec.Type, text)
		if err != nil {
			return false // the parameters are judged as they are given
		}
		has, ok := params.Get(spec.Name)
		if !ok {
			return false
		}
		want, err := core.Parameter{Name: spec.Name, Type: spec.Type, Value: value}.Canonical()
		if err != nil {
			return false
		}
		if found, err := has.Canonical(); err != nil || found != want {
			return false
		}
	}
	return true
}

// givenWords writes NAME=VALUE as it was given, sorted by name.
func givenWords(given map[string]string) []string {
	var words []string
	for _, name := range sortedKeys(given) {
		words = append(words, name+"="+given[name])
	}
	return words
}
