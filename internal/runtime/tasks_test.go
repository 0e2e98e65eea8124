package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestTasksAreExecutedAndTheirOutcomesKept(t *testing.T) {
	eachOffice(t, func(o *office) {
		stop := o.worker("a")
		o.worker("b")
		var specs []task.Spec
		for i := range 20 {
			specs = append(specs, task.Spec{Payload: json.RawMessage(fmt.Sprint(i))})
		}
		accepted := o.submit(task.Submission{Type: "work", Tasks: specs, Title: "twenty"})
		g := o.over(accepted.Group)
		require.Equal(o, task.GroupCompleted, g.State)
		require.Equal(o, 20, g.Succeeded)
		for i, id := range accepted.Tasks {
			list := o.attempts(id)
			require.Len(o, list, 1)
			require.Equal(o, []task.Artifact{task.Stdout(fmt.Sprint(i))}, list[0].Outcome.Artifacts)
		}
		workers, err := o.service.Workers(o.Context())
		require.NoError(o, err)
		require.Len(o, workers, 2)
		require.NoError(o, stop())
		workers, err = o.service.Workers(o.Context())
		require.NoError(o, err)
		states := map[string]string{}
		for _, w := range workers {
			states[w.Name] = w.State
		}
		require.Equal(o, map[string]string{"a": "GONE", "b": "ACTIVE"}, states)
	}, func(o *office, _ context.Context, t task.Task) (task.Outcome, error) {
		return task.Success().WithArtifact(task.Stdout(string(t.Spec.Payload))), nil
	})
}

func TestWhatAHandlerAnswersDecidesWhatComesNext(t *testing.T) {
	fails := func(_ *office, _ context.Context, t task.Task) (task.Outcome, error) {
		var how string
		if err := t.Decode(&how); err != nil {
			return task.Outcome{}, err
		}
		soon := func(o task.Outcome) task.Outcome { return o.WithRetryHint(json.RawMessage(`{"delay_ms": 1}`)) }
		switch how {
		case "once":
			if t.Attempts == 2 {
				return task.Success(), nil
			}
			return soon(task.Failure("not yet")), nil
		case "error":
			return soon(task.Outcome{}), errors.New("broken")
		case "fatal":
			return task.Outcome{}, exception.Fatal("work", errors.New("no way"))
		case "panic":
			panic("oh")
		case "goexit":
			goruntime.Goexit()
		}
		return task.Outcome{Kind: "DONE"}, nil
	}
	eachOffice(t, func(o *office) {
		o.worker("a")
		for payload, want := range map[string]struct {
			state    task.State
			attempts int
			reason   string
			decider  string
		}{
			`"once"`:   {task.Succeeded, 2, "", ""},
			`"error"`:  {task.Failed, 2, "broken", ""},
			`"fatal"`:  {task.Failed, 1, "no way", ""},
			`"panic"`:  {task.Failed, 2, "panic: oh", "at once"},
			`"goexit"`: {task.Failed, 1, "ended its goroutine", "never"},
			`"DONE"`:   {task.Failed, 1, `kind: it is "DONE"`, ""},
			`7`:        {task.Failed, 2, "cannot unmarshal", "at once"},
		} {
			accepted := o.submit(task.Submission{Decider: want.decider, Budget: task.Budget{MaxAttempts: 2}, Tasks: []task.Spec{{Type: "work", Payload: json.RawMessage(payload)}}})
			o.over(accepted.Group)
			got := o.task(accepted.Tasks[0])
			require.Equal(o, want.state, got.State, payload)
			require.Equal(o, want.attempts, got.Attempts, payload)
			require.Contains(o, got.LastError, want.reason)
			decisions, err := o.service.Decisions(o.Context(), got.ID)
			require.NoError(o, err)
			policy := want.decider
			if policy == "" {
				policy = runtime.DefaultDecider
			}
			for _, d := range decisions {
				require.Equal(o, policy, d.Policy, payload)
			}
		}
	}, fails)
}

func TestAnAttemptEndsByTimeoutDeadlineAndCancellation(t *testing.T) {
	eachOffice(t, func(o *office) {
		o.worker("a")
		limited := func(spec task.Spec, b task.Budget) *runtime.Accepted {
			spec.Type = "work"
			return o.submit(task.Submission{Tasks: []task.Spec{spec}, Budget: b})
		}
		a := limited(task.Spec{Timeout: 30 * time.Millisecond}, task.Budget{MaxAttempts: 1})
		o.over(a.Group)
		require.ErrorIs(o, <-o.causes, task.ErrTimeout)
		require.Equal(o, task.TimedOut, o.task(a.Tasks[0]).State)
		require.Contains(o, o.task(a.Tasks[0]).LastError, task.ErrTimeout.Error())

		a = limited(task.Spec{}, task.Budget{Deadline: time.Second})
		o.over(a.Group)
		require.ErrorIs(o, <-o.causes, task.ErrDeadline)
		require.Equal(o, task.TimedOut, o.task(a.Tasks[0]).State)

		a = limited(task.Spec{}, task.Budget{})
		o.until("it runs", func() bool { return o.task(a.Tasks[0]).State == task.Running })
		acted, err := o.service.Cancel(o.Context(), a.Tasks[0], runtime.By{Reason: "enough"})
		require.NoError(o, err)
		require.Equal(o, &runtime.Acted{Answer: "applied", State: task.Canceled}, acted)
		require.ErrorIs(o, <-o.causes, task.ErrCanceled)
		o.until("the worker has let go", func() bool {
			_, err := o.service.Rerun(o.Context(), a.Tasks[0], runtime.By{})
			return err == nil
		})
		o.until("it runs again", func() bool { return o.task(a.Tasks[0]).State == task.Running })
		_, err = o.service.CancelGroup(o.Context(), a.Group, runtime.By{})
		require.NoError(o, err)
		require.ErrorIs(o, <-o.causes, task.ErrCanceled)
	}, func(o *office, ctx context.Context, _ task.Task) (task.Outcome, error) {
		<-ctx.Done()
		o.causes <- context.Cause(ctx)
		return task.Outcome{}, context.Cause(ctx)
	})
}

func TestAWorkerThatStopsLetsShortTasksEndAndGivesLongOnesBack(t *testing.T) {
	eachOffice(t, func(o *office) {
		o.change = func(c *runtime.Config) { c.Drain = 500 * time.Millisecond }
		stop := o.worker("a")
		a := o.submit(task.Submission{Type: "work", Tasks: []task.Spec{{Payload: json.RawMessage(`"short"`)}, {Payload: json.RawMessage(`"long"`)}}})
		o.until("both run", func() bool {
			return o.task(a.Tasks[0]).State == task.Running && o.task(a.Tasks[1]).State == task.Running
		})
		o.free.Store(true)
		require.NoError(o, stop())
		require.Equal(o, task.Succeeded, o.task(a.Tasks[0]).State)
		require.Equal(o, task.RetryScheduled, o.task(a.Tasks[1]).State)
		require.Contains(o, o.task(a.Tasks[1]).LastError, task.ErrStopping.Error())
		o.worker("b")
		require.Equal(o, task.GroupCompleted, o.over(a.Group).State)
		require.Equal(o, 2, o.task(a.Tasks[1]).Attempts, "it counts as an attempt")
		decisions, err := o.service.Decisions(o.Context(), a.Tasks[1])
		require.NoError(o, err)
		require.Equal(o, "stopping", decisions[0].Policy)
	}, func(o *office, ctx context.Context, t task.Task) (task.Outcome, error) {
		var how string
		err := t.Decode(&how)
		for how == "short" && !o.free.Load() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if how == "short" || t.Attempts == 2 {
			return task.Success(), err
		}
		<-ctx.Done()
		return task.Outcome{}, context.Cause(ctx)
	})
}

func TestAHandlerThatDoesNotReturnIsLeftBehind(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	eachOffice(t, func(o *office) {
		o.change = func(c *runtime.Config) { c.Tasks.LeaveBehind = 50 * time.Millisecond }
		o.worker("a")
		a := o.submit(task.Submission{Tasks: []task.Spec{{Type: "work", Timeout: 20 * time.Millisecond}}, Budget: task.Budget{MaxAttempts: 1}})
		o.over(a.Group)
		require.Equal(o, task.TimedOut, o.task(a.Tasks[0]).State)
		require.Contains(o, o.task(a.Tasks[0]).LastError, "still runs")
		o.until("observers hear of it", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, e := range o.seen {
				if late, ok := e.(core.ComponentLate); ok {
					return late.Task == int64(a.Tasks[0]) && late.TaskType == "work"
				}
			}
			return false
		})
	}, func(_ *office, _ context.Context, _ task.Task) (task.Outcome, error) {
		<-release
		return task.Success(), nil
	})
}

func TestASubmissionIsRefusedWithAllThatIsWrong(t *testing.T) {
	eachOffice(t, func(o *office) {
		refused := func(err error) *refusal.Refusal {
			var r *refusal.Refusal
			require.ErrorAs(o, err, &r)
			return r
		}
		_, err := o.service.Submit(o.Context(), task.Submission{
			Decider: "coin", Budget: task.Budget{MaxAttempts: -1},
			Tasks: []task.Spec{{Type: "work"}, {Payload: json.RawMessage(`{`), Priority: 9}},
		})
		r := refused(err)
		require.Equal(o, refusal.Invalid, r.Reason)
		require.Len(o, r.Details, 5, r.Details)
		require.Contains(o, r.Details, "tasks[1]: payload: it is not JSON in UTF-8")
		require.Contains(o, err.Error(), `decider: there is no "coin" (there are: ["at once" "backoff" "never"])`)
		_, err = o.service.Submit(o.Context(), task.Submission{IdempotencyKey: "surfin.step 1", Tasks: []task.Spec{{Type: "surfin.parts", IdempotencyKey: "surfin.time 1"}}})
		require.Len(o, refused(err).Details, 3, "another's tasks would be those of a step or a schedule")
		require.Contains(o, err.Error(), `idempotency_key: "surfin.step 1" begins with "surfin.", like the keys of steps and schedules: choose another one`)
		_, err = o.service.Submit(o.Context(), task.Submission{})
		require.Contains(o, err.Error(), "tasks: the list is empty")
		_, err = o.service.Submit(o.Context(), task.Submission{Tasks: []task.Spec{{Type: "wrok"}}})
		require.Equal(o, refusal.UnknownType, refused(err).Reason)
		groups, err := o.service.Groups(o.Context(), 0, 0)
		require.NoError(o, err)
		require.Empty(o, groups)

		a := o.submit(task.Submission{IdempotencyKey: "k", Tasks: []task.Spec{{Type: "work"}}})
		again := o.submit(task.Submission{IdempotencyKey: "k", Tasks: []task.Spec{{Type: "work"}}})
		require.Equal(o, a.Group, again.Group)
		require.True(o, again.Duplicate)
		_, err = o.service.Submit(o.Context(), task.Submission{IdempotencyKey: "k", Tasks: []task.Spec{{Type: "work", Title: "x"}}})
		require.Equal(o, refusal.OtherSubmission, refused(err).Reason)
		_, err = o.service.Task(o.Context(), 999)
		require.Equal(o, refusal.NotFound, refused(err).Reason)
		_, err = o.service.Rerun(o.Context(), a.Tasks[0], runtime.By{})
		require.Equal(o, refusal.IllegalState, refused(err).Reason)
		_, err = o.service.Cancel(o.Context(), a.Tasks[0], runtime.By{})
		require.NoError(o, err)
		_, err = o.service.CancelGroup(o.Context(), a.Group, runtime.By{})
		require.Equal(o, refusal.Over, refused(err).Reason)
	}, nil)
}

func TestASubmissionJoinsTheTransactionOfItsCaller(t *testing.T) {
	eachOffice(t, func(o *office) {
		o.worker("a")
		var inside *runtime.Accepted
		undo := errors.New("undo")
		err := tx.NewManager(o.db).Do(o.Context(), tx.Attr{}, func(ctx context.Context) (err error) {
			if inside, err = o.service.Submit(ctx, task.Submission{Tasks: []task.Spec{{Type: "work"}}}); err != nil {
				return err
			}
			return undo
		})
		require.ErrorIs(o, err, undo)
		_, err = o.service.Group(o.Context(), inside.Group)
		require.ErrorIs(o, err, core.ErrNotFound)
		require.NoError(o, tx.NewManager(o.db).Do(o.Context(), tx.Attr{}, func(ctx context.Context) (err error) {
			inside, err = o.service.Submit(ctx, task.Submission{Tasks: []task.Spec{{Type: "work"}}})
			return err
		}))
		require.Equal(o, task.GroupCompleted, o.over(inside.Group).State)
	}, func(_ *office, _ context.Context, _ task.Task) (task.Outcome, error) { return task.Success(), nil })
}

func TestAHandlerThatWaitsGivesItsSlotBack(t *testing.T) {
	eachOffice(t, func(o *office) {
		o.change = func(c *runtime.Config) { c.Slots = 1 }
		o.worker("a")
		first := o.one(`"wait"`)
		o.until("it runs", func() bool { return o.task(first.Tasks[0]).State == task.Running })
		second := o.one(`"free"`)
		require.Equal(o, task.GroupCompleted, o.over(second.Group).State)
		require.Equal(o, task.GroupCompleted, o.over(first.Group).State)
		require.Equal(o, 1, o.task(first.Tasks[0]).Attempts)
	}, func(o *office, ctx context.Context, t task.Task) (task.Outcome, error) {
		if string(t.Spec.Payload) == `"free"` {
			o.free.Store(true)
			return task.Success(), nil
		}
		task.Idle(ctx)
		for !o.free.Load() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return task.Success(), context.Cause(ctx)
	})
}

func TestAWorkerThatLacksTheDeciderOfAGroupLeavesItsTasks(t *testing.T) {
	eachOffice(t, func(o *office) {
		own := o.catalog
		var err error
		o.catalog, err = runtime.NewCatalog([]runtime.NamedHandler{{Type: "work", New: func() (task.Handler, error) {
			return task.HandlerFunc(func(context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil }), nil
		}}}, nil)
		require.NoError(o, err)
		own, o.catalog = o.catalog, own
		o.change = func(c *runtime.Config) {
			c.Tasks.Catalog = own
			c.Tasks.Engine, err = local.New(local.Config{Database: o.db, Source: runtime.Waiting{Tasks: o.repo, Deciders: o.catalog.Deciders()}, Scan: 20 * time.Millisecond})
			require.NoError(o, err)
		}
		stop := o.worker("poor") // its engine delivers the tasks nevertheless, as a distributed one does
		accepted := o.submit(task.Submission{Decider: "never", Tasks: []task.Spec{{Type: "work"}}})
		o.until("refused", func() bool { return o.happened("refused") > 0 })
		require.Empty(o, o.attempts(accepted.Tasks[0]))
		waits, err := o.service.WaitingFor(o.Context(), o.task(accepted.Tasks[0]))
		require.NoError(o, err)
		require.Equal(o, `a worker that has the decider "never": no live worker has it`, waits)
		require.NoError(o, stop())

		o.change = nil
		o.worker("rich")
		require.Equal(o, task.GroupFailed, o.over(accepted.Group).State)
		require.Len(o, o.attempts(accepted.Tasks[0]), 1)
	}, func(*office, context.Context, task.Task) (task.Outcome, error) {
		return task.Failure("charged, then the line was cut"), nil
	})
}

func TestWhatWouldDoNothingIsSaid(t *testing.T) {
	eachOffice(t, func(o *office) {
		_, err := o.service.Set(o.Context(), taskports.LogRetention, "7", runtime.By{})
		require.ErrorIs(o, err, taskports.ErrSetting)
		require.ErrorContains(o, err, "tasks.logs names no folder to which log text moves")
		_, err = o.service.Set(o.Context(), taskports.LogRetention, "0", runtime.By{})
		require.NoError(o, err)

		settings := o.repo.Settings
		_, err = settings.Set(o.Context(), taskports.LogRetention, "7", "a program with a folder")
		require.NoError(o, err)
		_, err = runtime.MoveLogs(settings, nil, nil, time.Minute).Do(o.Context())
		require.ErrorContains(o, err, "log_retention_days_db is 7, but tasks.logs of this process names no folder")
		list, err := o.service.Settings(o.Context())
		require.NoError(o, err)
		for _, s := range list {
			require.NotEmpty(o, s.Unit)
			require.NotEmpty(o, s.Effect)
		}

		accepted := o.submit(task.Submission{Type: "work", Tasks: []task.Spec{{Title: "one"}, {Title: "two", Hints: task.Hints{DependenciesHint: json.RawMessage(`[1]`)}}}})
		require.Equal(o, []string{"tasks[1]: dependencies_hint is stored but has no effect: write after: [keys], with the keys of the tasks of the group that it waits for"}, accepted.Warnings)
		_, err = o.service.Submit(o.Context(), task.Submission{Tasks: []task.Spec{{Title: "Process downloaded data"}}})
		require.ErrorContains(o, err, `tasks[0]: type: the task has none`)
		require.ErrorContains(o, err, `write "type" in the task, such as {"type": "http_request", "payload": {"url": "https://example.com"}}`)
	}, func(*office, context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil })
}

// The hashes are those that the older program stored, and nulls are part of
// them.
func TestASubmissionThatAnOlderProgramStoredIsRecognized(t *testing.T) {
	eachOffice(t, func(o *office) {
		accepted := o.submit(task.Submission{IdempotencyKey: "k1", Tasks: []task.Spec{{Type: "work", IdempotencyKey: "t1"}, {Type: "work"}}})
		for table, hash := range map[string]string{
			"surfin_task_group": "23b19aaa11a6182f60265f3e7e9a22d95f5f7b5b6ffacd6001cbe099d0d4c66a", // of the whole text below
			"surfin_task":       "cc9b6f553159d4108f0012d19783cc375a8284435dea19819569d6c4b1d5ecd1", // of its first task
		} {
			_, err := o.db.Conn().ExecContext(o.Context(), "UPDATE "+table+" SET request_hash = '"+hash+"'")
			require.NoError(o, err)
		}
		again := func(text string) (*runtime.Accepted, error) {
			sub, err := runtime.ReadSubmission([]byte(text))
			require.NoError(o, err)
			return o.service.Submit(o.Context(), sub)
		}
		const tasks = `{"type": "work", "payload": {"n": 1}, "title": "b", "idempotency_key": "t1", "goal": null, "constraints": null, "seed_action_hint": null, "dependencies_hint": null}`
		same, err := again(`{"idempotency_key": "k1", "title": "x", "tasks": [` + tasks + `, {"type": "work", "payload": {"n": 2}, "goal": {"b": 1}}]}`)
		require.NoError(o, err)
		require.True(o, same.Duplicate)
		require.Equal(o, accepted.Tasks, same.Tasks)
		require.Empty(o, same.Warnings, "null is not a hint")
		same, err = again("[" + tasks + "]")
		require.NoError(o, err)
		require.True(o, same.Duplicate)
		require.Equal(o, accepted.Tasks[:1], same.Tasks)
	}, func(*office, context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil })
}
