package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// The five examples of Weaver's document (source 001), as it prints them, in Go where it has Rust.

// printedJob is the first one, as JSON.
const printedJob = `{
  "tasks": [
    {"title": "Download file", "intent": "Fetch data from API", "goal": {"url": "https://example.com/data.json"},
     "constraints": null, "seed_action_hint": {"type": "http_request"}, "dependencies_hint": null},
    {"title": "Process downloaded data"}
  ],
  "budget": {"max_attempts_per_task": 3, "max_total_attempts": 10, "deadline_ms": 60000, "max_no_progress_steps": 50}
}`

// httpRequestHandler is the second one.
type httpRequestHandler struct{}

func (httpRequestHandler) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	var payload struct {
		URL string `json:"url"`
	}
	if err := t.Decode(&payload); err != nil || payload.URL == "" {
		return task.Outcome{}, errors.New("Missing URL") //nolint:staticcheck // as it is printed
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, payload.URL, nil)
	if err != nil {
		return task.Outcome{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return task.Outcome{
			Kind: task.OutcomeFailure, Artifacts: []task.Artifact{task.Stderr(err.Error())}, Reason: "Network error",
			RetryHint: json.RawMessage(`{"backoff_ms": 1000}`),
		}, nil
	}
	defer response.Body.Close() //nolint:errcheck // it is read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return task.Outcome{}, err
	}
	return task.Outcome{Kind: task.OutcomeSuccess, Artifacts: []task.Artifact{task.Stdout(string(body))}, Reason: "Request succeeded"}, nil
}

// customDecider is the third one.
type customDecider struct{ maxRetryDelay time.Duration }

func (d customDecider) Decide(c task.Case) task.Decision {
	attempts, limit := c.Spent.Attempts, c.Budget.MaxAttempts
	switch {
	case c.Outcome.Kind == task.OutcomeSuccess:
		return task.MarkDead("Decider called on success")
	case attempts >= limit:
		return task.MarkDead(fmt.Sprintf("Max attempts (%d) exceeded", limit))
	}
	delay := min(time.Duration(1<<attempts)*time.Second, d.maxRetryDelay)
	return task.Retry(delay, fmt.Sprintf("Retry %d of %d after %gs", attempts+1, limit, delay.Seconds()))
}

// printed is an application with the second and third example.
func printed(t *testing.T, url string) *batch.App {
	t.Helper()
	app, err := batch.New(t.Context(), batch.Settings{Databases: map[string]settings.Database{tx.Default: {URL: url}}, AutoMigrate: "true"},
		batch.Handler("fetch", func() httpRequestHandler { return httpRequestHandler{} }),
		batch.Handler("example", func() task.HandlerFunc {
			return func(_ context.Context, t task.Task) (task.Outcome, error) {
				if t.Attempts == 1 {
					return task.Failure("Connection timeout"), nil
				}
				return task.Success(), nil
			}
		}),
		batch.TaskDecider("custom", func() customDecider { return customDecider{300 * time.Millisecond} }),
	)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	require.NoError(t, app.Prepare(t.Context()))
	return app
}

func work(t *testing.T, app *batch.App, id task.GroupID) *task.Group {
	t.Helper()
	stop, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- app.Work(t.Context(), stop, runtime.Options{Slots: 2}) }()
	g, err := app.Tasks.Wait(t.Context(), id)
	close(stop)
	require.NoError(t, errors.Join(err, <-worked))
	return g
}

func TestTheFirstPrintedExampleSaysWhatToWriteAndThenIsSubmitted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		_, err := runtime.ReadSubmission([]byte(printedJob))
		require.ErrorContains(t, err, `budget: unknown key "deadline_ms": write deadline, a text with a unit, such as "60s"`)
		require.ErrorContains(t, err, `budget: unknown key "max_attempts_per_task": write max_attempts`)
		require.ErrorContains(t, err, `budget: unknown key "max_no_progress_steps": write max_no_progress`)
		var whole map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(printedJob), &whole))
		whole["budget"] = json.RawMessage(`{"max_attempts": 3, "max_total_attempts": 10, "deadline": "60s", "max_no_progress": 50}`)
		text, err := json.Marshal(whole)
		require.NoError(t, err)
		sub, err := runtime.ReadSubmission(text)
		require.NoError(t, err)

		app := printed(t, url)
		_, err = app.Tasks.Submit(t.Context(), sub)
		require.ErrorContains(t, err, `tasks[1]: type: the task has none`, "a title is for people")
		require.ErrorContains(t, err, `write "type" in the task`)
		sub.Tasks[1].Type = "example"
		accepted, err := app.Tasks.Submit(t.Context(), sub)
		require.NoError(t, err)
		require.Empty(t, accepted.Warnings, "null is no hint")
		g := work(t, app, accepted.Group)
		require.Equal(t, []int{1, 1}, []int{g.Succeeded, g.Failed})
		first, err := app.Tasks.Task(t.Context(), accepted.Tasks[0])
		require.NoError(t, err)
		require.Contains(t, first.LastError, `write "payload": {"url": "https://example.com/data.json"}; the goal is not used`)
	})
}

func TestTheSecondAndThirdPrintedExamplesExecuteAndDecide(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, "data")
			if err != nil {
				t.Error(err)
			}
		}))
		gone := server.URL
		app := printed(t, url)
		at := func(url string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"url": %q}`, url)) }
		accepted, err := app.Tasks.Submit(t.Context(), task.Submission{Type: "fetch", Decider: "custom", Budget: task.Budget{MaxAttempts: 2}, Tasks: []task.Spec{{Payload: at(server.URL)}, {}}})
		require.NoError(t, err)
		require.Equal(t, task.GroupFailed, work(t, app, accepted.Group).State)
		attempts, err := app.Tasks.Attempts(t.Context(), accepted.Tasks[0])
		require.NoError(t, err)
		require.Equal(t, "Request succeeded", attempts[0].Outcome.Reason)
		require.Equal(t, task.Stdout("data"), attempts[0].Outcome.Artifacts[0])
		decisions, err := app.Tasks.Decisions(t.Context(), accepted.Tasks[1])
		require.NoError(t, err)
		require.Len(t, decisions, 2)
		require.Equal(t, "Retry 2 of 2 after 0.3s", decisions[0].Decision.Reason)
		require.Equal(t, "Max attempts (2) exceeded", decisions[1].Decision.Reason)
		without, err := app.Tasks.Task(t.Context(), accepted.Tasks[1])
		require.NoError(t, err)
		require.Contains(t, without.LastError, "Missing URL")

		server.Close()
		accepted, err = app.Tasks.Submit(t.Context(), task.Submission{Type: "fetch", Budget: task.Budget{MaxAttempts: 2}, Tasks: []task.Spec{{Payload: at(gone)}}})
		require.NoError(t, err)
		work(t, app, accepted.Group)
		decisions, err = app.Tasks.Decisions(t.Context(), accepted.Tasks[0])
		require.NoError(t, err)
		require.Equal(t, time.Second, decisions[0].Decision.Delay, "backoff_ms of its hint")
	})
}

func TestTheFourthPrintedExampleAsksForAStatus(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app := printed(t, url)
		accepted, err := app.Tasks.Submit(t.Context(), task.Submission{Type: "example", Tasks: []task.Spec{{}, {}}})
		require.NoError(t, err)
		status, err := app.Tasks.Status(t.Context(), accepted.Group)
		require.NoError(t, err)
		require.Equal(t, "Tasks: 2 total, 0 succeeded, 0 failed, running",
			fmt.Sprintf("Tasks: %d total, %d succeeded, %d failed, %s", status.Total, status.Succeeded, status.Failed, status.State))
		_, err = app.Tasks.Status(t.Context(), accepted.Group+1)
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestTheFifthPrintedExampleIsExecutedByAWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app := printed(t, url)
		accepted, err := app.Tasks.Submit(t.Context(), task.Submission{Type: "example", Tasks: []task.Spec{{Payload: json.RawMessage(`{"data": "value"}`)}}})
		require.NoError(t, err)
		require.Equal(t, task.GroupCompleted, work(t, app, accepted.Group).State)
		attempts, err := app.Tasks.Attempts(t.Context(), accepted.Tasks[0])
		require.NoError(t, err)
		require.Len(t, attempts, 2)
		require.Equal(t, "Connection timeout", attempts[0].Reason)
	})
}
