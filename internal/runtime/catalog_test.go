package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestNoOtherDeciderDecidesInPlaceOfTheOneThatAGroupNames(t *testing.T) {
	t.Parallel()
	catalog, err := runtime.NewCatalog(nil, []runtime.NamedDecider{
		named("broken", task.DeciderFunc(func(task.Case) task.Decision { panic("oh") })),
		named("eager", task.DeciderFunc(func(task.Case) task.Decision { return task.Retry(-1, "now") })),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"backoff", "broken", "eager"}, catalog.Deciders())
	decide, err := catalog.Decide()
	require.NoError(t, err)
	one := task.Case{Outcome: task.Failure("x"), Budget: task.Budget{}.Filled(), Spent: task.Spent{Attempts: 1}}
	policy, d := decide(one)
	require.Equal(t, runtime.DefaultDecider, policy)
	require.False(t, d.Dead)
	require.Equal(t, "attempt 2 of 5", d.Reason)
	require.Positive(t, d.Delay)
	for name, want := range map[string]string{
		"gone":   `this process does not have the decider "gone", which alone may decide about another attempt`,
		"broken": `the decider "broken" failed, and no other decider replaces it: panic: oh`,
	} {
		one.Decider = name
		policy, d := decide(one)
		require.Equal(t, name, policy)
		require.Equal(t, task.MarkDead(want), d)
	}
	one.Decider = "eager"
	policy, d = decide(one)
	require.Equal(t, "eager", policy)
	require.Equal(t, task.Retry(0, "now"), d)
	one.Spent.Attempts = 5
	_, d = decide(one)
	require.True(t, d.Dead, "not beyond the budget")
}

func TestNamesOfHandlersAndDecidersAreUnique(t *testing.T) {
	t.Parallel()
	h := runtime.NamedHandler{Type: "a", New: func() (task.Handler, error) { return nil, errors.New("no server") }}
	_, err := runtime.NewCatalog([]runtime.NamedHandler{h, h, {Type: ""}}, []runtime.NamedDecider{named("d", nil), named("d", nil)})
	require.ErrorContains(t, err, `handler of tasks "a": the name is used twice`)
	require.ErrorContains(t, err, `handler of tasks "": it needs a name`)
	require.ErrorContains(t, err, `decider of tasks "d": the name is used twice`)
}

func TestASubmissionIsReadStrictly(t *testing.T) {
	t.Parallel()
	sub, err := runtime.ReadSubmission([]byte(`{"title": "x", "type": "shell", "decider": "d", "idempotency_key": "k",
		"budget": {"max_attempts": 2, "max_total_attempts": 9, "deadline": "1h30m", "max_no_progress": 3},
		"tasks": [{"payload": {"a": 1}, "delay": "10s", "timeout": "1m", "priority": 3, "idempotency_key": "t", "goal": [1]}, {}]}`))
	require.NoError(t, err)
	require.Equal(t, task.Submission{
		Title: "x", Type: "shell", Decider: "d", IdempotencyKey: "k",
		Budget: task.Budget{MaxAttempts: 2, MaxTotalAttempts: 9, Deadline: 90 * time.Minute, MaxNoProgress: 3},
		Tasks: []task.Spec{{
			Payload: json.RawMessage(`{"a": 1}`), Delay: 10 * time.Second, Timeout: time.Minute, Priority: 3, IdempotencyKey: "t", Hints: task.Hints{Goal: json.RawMessage(`[1]`)},
		}, {}},
	}, sub)
	sub, err = runtime.ReadSubmission([]byte(` [{"type": "a"}, null]`))
	require.NoError(t, err)
	require.Len(t, sub.Tasks, 2)
	for text, want := range map[string]string{
		``: "EOF", `{"task": []}`: `unknown key "task" (did you mean tasks?)`, `{"tasks": []} x`: "after its end", `[{"delay": "soon"}]`: `"soon" is not a duration`, `[{"delay": 5}]`: "cannot unmarshal",
	} {
		_, err := runtime.ReadSubmission([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	view, err := json.Marshal(runtime.ViewTask(task.Task{ID: 7, Spec: task.Spec{Type: "a", Timeout: time.Minute}}))
	require.NoError(t, err)
	require.Contains(t, string(view), `"spec":{"type":"a","timeout":"1m0s"}`)
}

func TestAWorkerWithoutAHandlerOfItsTypesIsRefused(t *testing.T) {
	eachOffice(t, func(o *office) {
		config := runtime.Config{Tasks: &runtime.Tasks{Executions: o.repo, Maintenance: o.repo, Engine: o.engine(), Database: o.db, Catalog: o.catalog, Worker: "w", Types: []string{"work", "wrok"}}}
		_, err := runtime.NewWorker(config)
		require.ErrorContains(o, err, `tasks of type "wrok" have no handler in this process (there are: ["work"])`)
		_, err = runtime.NewWorker(runtime.Config{})
		require.ErrorContains(o, err, "needs parts or tasks")
	}, func(*office, context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil })
}
