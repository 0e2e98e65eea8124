package batchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const variable = "SURFIN_BATCHTEST_CRASH"

// orders are the instructions of a process of CrashEverywhere.
type orders struct {
	Test   string            `json:"test"`
	Site   string            `json:"site"`
	Dir    string            `json:"dir"`
	URLs   map[string]string `json:"urls"`
	Kill   moment            `json:"kill"`
	Report string            `json:"report"`
}

type report struct {
	Commits []string    `json:"commits"`
	Status  core.Status `json:"status"`
	Error   string      `json:"error"`
	Unfired []string    `json:"unfired"`
}

// start runs the job in its own process; nil if it was killed as ordered. Any other end ends the test.
func (r *crashRun) start(kill moment) *report {
	r.t.Helper()
	r.runs++
	o := orders{
		Test: r.v.test, Site: r.v.site, Dir: r.crash.dir, URLs: r.urls, Kill: kill,
		Report: filepath.Join(r.t.TempDir(), "report.json"),
	}
	text, err := json.Marshal(o)
	if err != nil {
		r.t.Fatalf("batchtest: %v", err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), r.crash.timeout())
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", only(o.Test), "-test.count=1", "-test.timeout=0") //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	what := fmt.Sprintf("process %d of this run", r.runs)
	switch {
	case ctx.Err() != nil:
		r.t.Fatalf("batchtest: %s took longer than %v:\n%s", what, r.crash.timeout(), out.String())
	case err != nil && wasKilled(err) && kill.Commit > 0:
		return nil
	case err != nil:
		r.t.Fatalf("batchtest: %s was not killed by its own hand, and ended with %v:\n%s", what, err, out.String())
	}
	return r.read(o.Report, what, out.String())
}

func (r *crashRun) read(path, what, out string) *report {
	r.t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // our own
	if err != nil {
		r.t.Fatalf("batchtest: %s never came to its job: is CrashEverywhere reached whenever the test %s runs alone?\n%s", what, r.v.test, out)
	}
	var done report
	if err := json.Unmarshal(text, &done); err != nil {
		r.t.Fatalf("batchtest: %s: %v", what, err)
	}
	if done.Status != core.StatusCompleted {
		r.t.Fatalf("%s: the job did not complete (status %q): %s\n%s", what, done.Status, done.Error, out)
	}
	return &done
}

func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func only(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

func ordersOf(t *testing.T) (orders, bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return orders{}, false
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("batchtest: %s: %v", variable, err)
	}
	return o, true
}

func (o orders) obey(t *testing.T, describe func(*Crash)) {
	t.Helper()
	crash := &Crash{dir: o.Dir}
	describe(crash)
	done, err := o.run(t.Context(), crash)
	if err != nil {
		t.Fatalf("batchtest: %v", err)
	}
	text, err := json.Marshal(done)
	if err != nil {
		t.Fatalf("batchtest: %v", err)
	}
	if err := os.WriteFile(o.Report, text, 0o600); err != nil {
		t.Fatalf("batchtest: %v", err)
	}
	t.SkipNow() // the rest of the test is for its own process
}

func (o orders) run(ctx context.Context, crash *Crash) (done report, err error) {
	count := &commits{at: o.Kill}
	faults := NewFaults(crash.Faults...)
	opts := append([]fx.Option{count.option(), faults.Option(), batch.Log(nil)}, crash.options()...)
	app, err := batch.New(ctx, config{urls: o.URLs}.settings(), opts...)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, app.Close(context.WithoutCancel(ctx))) }()
	given, err := parameters(crash.Params)
	if err != nil {
		return done, err
	}
	exec, err := crash.run(ctx, app, given)
	done = report{Commits: count.made(), Unfired: faults.Unfired()}
	var complete *ports.InstanceCompleteError
	switch {
	case errors.As(err, &complete):
		done.Status = core.StatusCompleted // it was killed after its last commit
	case err != nil:
		return done, err
	default:
		done.Status = exec.Status
		done.Error = o.describe(ctx, app.Repository, exec.ID)
	}
	return done, nil
}

// The worker continues a job that an earlier process left parked.
func (c *Crash) run(ctx context.Context, app *batch.App, params map[string]string) (exec *operator.Execution, err error) {
	if !c.Worker {
		return app.Run(ctx, c.request(params))
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- app.Work(ctx, stop, runtime.Options{Slots: 2, Poll: workerPoll}) }()
	defer func() {
		close(stop)
		err = errors.Join(err, <-ended)
	}()
	for {
		exec, err = app.Run(ctx, c.request(params))
		parked, is := errors.AsType[*ports.AlreadyRunningError](err)
		if !is {
			return exec, err
		}
		for over := false; !over; {
			now, err := app.Repository.Execution(ctx, parked.ExecutionID)
			switch {
			case err != nil:
				return nil, err
			case now.Status == core.StatusCompleted:
				return &operator.Execution{ID: now.ID, Status: now.Status}, nil
			case !now.Status.IsOver():
				time.Sleep(workerPoll)
			default:
				over = true
			}
		}
	}
}

const workerPoll = 20 * time.Millisecond

func (o orders) describe(ctx context.Context, repo ports.Repository, id core.JobExecutionID) string {
	exec, err := repo.Execution(ctx, id)
	if err != nil {
		return err.Error()
	}
	steps, err := repo.Steps(ctx, exec.ID)
	if err != nil {
		return errors.Join(errors.New(exec.Error), err).Error()
	}
	return (&Run{Execution: *exec, Steps: steps}).String()
}
