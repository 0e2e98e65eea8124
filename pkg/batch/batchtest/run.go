package batchtest

import (
	"context"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Run is the stored result of a job.
type Run struct {
	Execution core.JobExecution
	Steps     []core.StepExecution
	env       *Env
}

func (e *Env) outcome(id core.JobExecutionID) *Run {
	e.t.Helper()
	ctx := e.t.Context()
	stored, err := e.Repository().Execution(ctx, id)
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	steps, err := e.Repository().Steps(ctx, id)
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	return &Run{Execution: *stored, Steps: steps, env: e}
}

// Completed ends the test unless the job is COMPLETED.
func (r *Run) Completed() *Run {
	r.env.t.Helper()
	return r.is(core.StatusCompleted)
}

// Failed ends the test unless the job is FAILED with an error that contains text.
func (r *Run) Failed(text string) *Run {
	r.env.t.Helper()
	r.is(core.StatusFailed)
	if all := r.String(); !strings.Contains(all, text) {
		r.env.t.Fatalf("the job failed, but not with %q:\n%s", text, all)
	}
	return r
}

func (r *Run) is(want core.Status) *Run {
	r.env.t.Helper()
	if r.Execution.Status != want {
		r.env.t.Fatalf("the job should be %s:\n%s", want, r)
	}
	return r
}

// Step returns a step's record; a step that did not run ends the test.
func (r *Run) Step(name string) core.StepExecution {
	r.env.t.Helper()
	for _, s := range r.Steps {
		if s.Name == name {
			return s
		}
	}
	r.env.t.Fatalf("step %s did not run:\n%s", name, r)
	return core.StepExecution{}
}

// Counters checks all counters of a step (rule C11).
func (r *Run) Counters(step string, want core.Counters) *Run {
	r.env.t.Helper()
	if got := r.Step(step).Counters; got != want {
		r.env.t.Errorf("counters of step %s:\n got %+v\nwant %+v", step, got, want)
	}
	return r
}

// Skipped returns the stored skips of a step, in order.
func (r *Run) Skipped(step string) []core.SkippedItem {
	r.env.t.Helper()
	var of []core.SkippedItem
	list, err := skippedItems(r.env.t.Context(), r.env.Repository(), r.Execution.ID)
	if err != nil {
		r.env.t.Fatalf("batchtest: %v", err)
	}
	id := r.Step(step).ID
	for _, s := range list {
		if s.StepExecutionID == id {
			of = append(of, s)
		}
	}
	return of
}

// String shows status and error of the job and its steps.
func (r *Run) String() string {
	var b strings.Builder
	line := func(what string, status core.Status, exit, err string) {
		fmt.Fprintf(&b, "%s: %s", what, status)
		if exit != string(status) {
			fmt.Fprintf(&b, " (%s)", exit)
		}
		if err != "" {
			b.WriteString(": " + err)
		}
		b.WriteString("\n")
	}
	line("job "+r.Execution.JobName, r.Execution.Status, r.Execution.ExitCode, r.Execution.Error)
	for _, s := range r.Steps {
		line("step "+s.Name, s.Status, s.ExitCode, s.Error)
	}
	return b.String()
}

const page = 1000

func skippedItems(ctx context.Context, store ports.SkipReader, id core.JobExecutionID) ([]core.SkippedItem, error) {
	var all []core.SkippedItem
	filter := ports.SkipFilter{Execution: id, Limit: page}
	for {
		list, err := store.SkippedItems(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("read the skipped items: %w", err)
		}
		all = append(all, list...)
		if len(list) < page {
			return all, nil
		}
		filter.After = list[len(list)-1].ID
	}
}
