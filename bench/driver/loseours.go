package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

const loseJob = `job: lose
parameters: {input: {type: path}}
flow:
- step: load
  chunk:
    size: 10
    reader: {csv: {path: "${params.input}", item: entry}}
    writer: [disturb, {table: entry}]
    retry: {limit: 3, errors: [transient]}
    skip: {limit: 5, errors: [constraint]}
`

type entry struct {
	ID   int64
	Name string
}

func (c loseCase) ours(ctx context.Context, w Work) (r Result, err error) {
	d := &disturbing{}
	app, err := openApp(ctx, w, w.URL, batch.Item[entry]("entry"), batch.Writer[entry]("disturb", func() *disturbing { return d }))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	if !w.Again {
		d.do = c.disturbance(app)
	}
	file := filepath.Join(w.Dir, "job.yaml")
	if err := os.WriteFile(file, []byte(loseJob), 0o600); err != nil {
		return r, err
	}
	exec, err := app.Run(ctx, batch.RunRequest{File: file, Params: map[string]string{"input": w.Input}})
	if err != nil {
		return r, err
	}
	r.Status = string(exec.Status)
	if exec.Status != core.StatusCompleted {
		r.Cause = exec.Error
	}
	all, err := app.List(ctx, operator.ListRequest{Job: "lose"})
	if err != nil {
		return r, err
	}
	for _, e := range all.Executions {
		page, err := app.Skips(ctx, operator.SkipsRequest{Execution: e.ID})
		if err != nil {
			return r, err
		}
		r.Skipped += len(page.Items)
	}
	return r, nil
}

// disturbance is the disturbance of the first process, or nil.
func (c loseCase) disturbance(app *batch.App) func() error {
	switch c.disturb {
	case "kill":
		return func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	case "stop":
		return func() error {
			// As an operator does, outside of the current transaction.
			ctx := context.Background()
			running, err := app.List(ctx, operator.ListRequest{Running: true})
			if err != nil {
				return err
			}
			for _, e := range running.Executions {
				if _, err := app.Stop(ctx, e.ID); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		return nil
	}
}

// disturbing is a writer that writes nothing.
type disturbing struct{ do func() error }

func (d *disturbing) Write(_ context.Context, entries []entry) error {
	if d.do == nil || len(entries) != 1 || entries[0].ID != disturbAt {
		return nil
	}
	do := d.do
	d.do = nil
	if err := do(); err != nil {
		return exception.Fatal("disturb", err)
	}
	return nil
}
