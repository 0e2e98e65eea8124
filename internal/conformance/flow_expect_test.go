package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type differences []string

func (d *differences) that(is bool, key, format string, args ...any) {
	if !is {
		*d = append(*d, key+": "+fmt.Sprintf(format, args...))
	}
}

func (d *differences) text(key string, want *string, got any) {
	if want != nil {
		d.that(*want == fmt.Sprint(got), key, "expected %s, got %v", *want, got)
	}
}

func (d *differences) list(key string, want *[]string, got []string) {
	if want != nil {
		d.that(slices.Equal(*want, got), key, "expected %v, got %v", *want, got)
	}
}

func (r *flowRun) problems(e *flowExpectation, o *launched) []string {
	var d differences
	d.launch(e, o)
	for _, name := range sortedKeys(e.JobStatusSeenBy) {
		want := e.JobStatusSeenBy[name]
		d.text("job_status_seen_by "+name, &want, r.seen[name])
	}
	for _, name := range sortedKeys(e.Asked) {
		want := e.Asked[name]
		d.text("asked "+name, &want, r.asks[name])
	}
	if e.Rows != nil {
		rows, err := itemsOf(r.t.Context(), r.engine.Database, r.name)
		require.NoError(r.t, err)
		d.list("rows", e.Rows, rows)
	}
	return d
}

func (d *differences) launch(e *flowExpectation, o *launched) {
	d.reason("error", e.Error, o.failure)
	d.refusal(e, o)
	d.list("executed", e.Executed, o.names())
	if e.ExecutedSet != nil {
		want := slices.Sorted(slices.Values(*e.ExecutedSet))
		d.list("executed_set", &want, slices.Sorted(slices.Values(o.names())))
	}
	if names := o.names(); e.ExecutedLast != nil {
		d.that(len(names) > 0 && names[len(names)-1] == *e.ExecutedLast, "executed_last", "expected %s, got %v", *e.ExecutedLast, names)
	}
	d.text("step_count", e.StepCount, len(o.steps))
	d.steps(e.Steps, o.steps)
	if e.UniqueStepExecutionIDs != nil {
		d.that(unique(o.steps) == *e.UniqueStepExecutionIDs, "unique_step_execution_ids", "%v", o.steps)
	}
	if o.exec != nil {
		d.text("status", e.Status, o.exec.Status)
		d.text("exit_code", e.ExitCode, o.exec.ExitCode)
	}
	if o.waited && o.exec != nil {
		d.over(o)
	}
}

func (d *differences) reason(key string, symbol *string, err error) {
	if symbol != nil {
		is, known := reasons()[*symbol]
		d.that(known && is(err), key, "expected %s, got %v", *symbol, err)
	}
}

func (d *differences) refusal(e *flowExpectation, o *launched) {
	switch {
	case e.Refused != nil && *e.Refused != "true":
		d.reason("refused", e.Refused, o.refusal)
		d.that(o.exec == nil, "refused", "it was launched")
	case e.Refused != nil:
		d.that(o.refusal != nil, "refused", "it was launched")
	case o.refusal != nil && e.Error == nil:
		d.that(false, "launch", "it was refused: %v", o.refusal)
	}
	pinned := e.Status != nil || e.ExitCode != nil || e.Steps != nil
	d.that(o.exec != nil || !pinned, "launch", "there is no execution: %v", o.refusal)
}

func (d *differences) steps(want map[string]string, steps []core.StepExecution) {
	for _, name := range sortedKeys(want) {
		s, ran := newest(steps, name)
		if !ran {
			d.that(false, "steps", "%s did not run", name)
			continue
		}
		status, exit, withExit := strings.Cut(want[name], ":")
		d.that(status == string(s.Status), "steps "+name, "expected %s, got %s (%s)", status, s.Status, s.Error)
		d.that(!withExit || exit == s.ExitCode, "steps "+name, "expected exit code %s, got %s", exit, s.ExitCode)
	}
}

func newest(steps []core.StepExecution, name string) (core.StepExecution, bool) {
	for _, s := range slices.Backward(steps) {
		if s.Name == name {
			return s, true
		}
	}
	return core.StepExecution{}, false
}

// over holds in every scenario: ended executions and steps are recorded as ended, and none looks as if it
// were still running.
func (d *differences) over(o *launched) {
	d.that(o.exec.Status.IsOver() && !o.exec.EndedAt.IsZero(), "end", "the execution is %s, ended at %v", o.exec.Status, o.exec.EndedAt)
	d.that(o.exec.ExitCode != "", "end", "the execution has no exit code")
	d.that(o.exec.Status != core.StatusCompleted || o.exec.Error == "", "end", "a completed execution has the error %s", o.exec.Error)
	d.that(unique(o.steps), "ids", "step executions are there twice")
	for _, s := range o.steps {
		d.that(s.Status.IsOver() && !s.EndedAt.IsZero(), "end", "step %s is %s, ended at %v", s.Name, s.Status, s.EndedAt)
		d.that(s.ExitCode != "", "end", "step %s has no exit code", s.Name)
	}
}

func unique(steps []core.StepExecution) bool {
	seen := map[core.StepExecutionID]bool{}
	for _, s := range steps {
		seen[s.ID] = true
	}
	return len(seen) == len(steps)
}

func (r *flowRun) refused(symbol string, err error) {
	r.t.Helper()
	require.Error(r.t, errors.Join(err, r.suspicious()), "the definition was not refused (%s)", symbol)
	kinds := kindsOf(errors.Join(err, r.suspicious()))
	if slices.Contains(problemKinds(), symbol) {
		assert.Contains(r.t, kinds, symbol, "%v", err)
	}
}

func (r *flowRun) suspicious() error {
	j, err := r.job(nil)
	if err != nil {
		return nil //nolint:nilerr // it is refused for more
	}
	var errs []error
	for _, p := range j.Flow.Suspicious() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

func problemKinds() []string {
	kinds := []string{nextAndOn}
	for _, k := range []model.FlowProblemKind{
		model.EmptyFlow, model.DuplicateElement, model.UnknownTarget, model.TargetOutOfScope, model.Unreachable, model.EndlessLoop,
	} {
		kinds = append(kinds, string(k))
	}
	return kinds
}

func kindsOf(err error) []string {
	var kinds []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // each of them is looked at
		for _, e := range joined.Unwrap() {
			kinds = append(kinds, kindsOf(e)...)
		}
		return kinds
	}
	var problem *model.FlowProblem
	var definition *definitionError
	switch {
	case errors.As(err, &problem):
		return []string{string(problem.Kind)}
	case errors.As(err, &definition):
		return []string{definition.kind}
	}
	return nil
}
