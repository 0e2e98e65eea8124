// Command weaver submits a group of tasks with a budget, executes it with a worker in the same process, and
// prints the result. README.md explains it.
//
// It imports pkg/batch, core, runtime and fx, and no command line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: weaver URL")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := weave(ctx, os.Args[1], time.Minute, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// registrations are the application's additions to the stock handlers shell and http_request.
func registrations(maxRetryDelay time.Duration) fx.Option {
	return fx.Options(
		fx.Supply(http.DefaultClient),
		batch.Handler("words", newWords),
		batch.TaskDecider("patient", func() patient { return patient{maxRetryDelay} }),
	)
}

func weave(ctx context.Context, url string, maxRetryDelay time.Duration, out io.Writer) (err error) {
	s, err := batch.LoadSettings()
	if err != nil {
		return err
	}
	s.AutoMigrate = "true"
	s.Tasks.Shell = true // only this program submits tasks here
	app, err := batch.New(ctx, s, registrations(maxRetryDelay))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close(context.WithoutCancel(ctx))) }()
	if err := app.Prepare(ctx); err != nil {
		return err
	}
	accepted, err := app.Tasks.Submit(ctx, plan(url))
	if err != nil {
		return err
	}
	stop, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- app.Work(ctx, stop, batch.WorkOptions{Slots: 3}) }()
	group, err := app.Tasks.Wait(ctx, accepted.Group)
	close(stop)
	if err = errors.Join(err, <-worked); err != nil {
		return err
	}
	return show(ctx, app.Tasks, group, accepted.Tasks, out)
}

func plan(url string) task.Submission {
	at := json.RawMessage(fmt.Sprintf(`{"url": %q}`, url))
	return task.Submission{
		Title: "look at a page", Decider: "patient",
		Budget: task.Budget{MaxAttempts: 3, MaxTotalAttempts: 10, Deadline: time.Minute, MaxNoProgress: 50},
		Tasks: []task.Spec{
			{
				Title: "Download file", Payload: at,
				// The type of the hint stands for the task's.
				Hints: task.Hints{Intent: "Fetch data from API", Goal: at, SeedActionHint: json.RawMessage(`{"type": "http_request"}`)},
			},
			{Title: "Count words", Type: "words", Payload: at},
			{Title: "Say so", Type: "shell", Payload: json.RawMessage(`{"command": ["echo", "looked at it"]}`)},
		},
	}
}

// show prints the status of the group, and its tasks with their attempts and decisions.
func show(ctx context.Context, tasks *batch.TaskService, g *task.Group, ids []task.ID, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s (%d total, %d succeeded, %d failed)\n", g.Title, g.State, g.Total, g.Succeeded, g.Failed)
	for _, id := range ids {
		t, err := tasks.Task(ctx, id)
		if err != nil {
			return err
		}
		attempts, err := tasks.Attempts(ctx, id)
		if err != nil {
			return err
		}
		decisions, err := tasks.Decisions(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s (%s): %s\n", t.Spec.Title, t.Spec.Type, t.State)
		for i, a := range attempts {
			fmt.Fprintf(&text, "  attempt %d: %s %s\n", a.Number, a.State, a.Reason)
			if i < len(decisions) {
				fmt.Fprintf(&text, "  %s: %s\n", decisions[i].Policy, decisions[i].Decision.Reason)
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
