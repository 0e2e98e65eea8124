package step_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testengine"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type bed struct {
	*testengine.Engine
	executor *step.SimpleStepExecutor
	job      *core.JobExecution
	ref      ports.JobRef
	stop     chan struct{}

	mu   sync.Mutex
	seen []core.Event
}

func newBed(t *testing.T, url string) *bed {
	t.Helper()
	b := &bed{Engine: engine(t, url), stop: make(chan struct{})}
	b.executor = step.NewSimpleStepExecutor(b.Repository, b.Database.Name(), core.ObserverFunc(b.observe))
	b.launch("job")
	return b
}

func (b *bed) observe(_ context.Context, e core.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, e)
}

func observed[E core.Event](b *bed) []E {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []E{}
	for _, e := range b.seen {
		if of, ok := e.(E); ok {
			list = append(list, of)
		}
	}
	return list
}

func (b *bed) launch(name string) {
	b.T.Helper()
	launched, err := b.Repository.Launch(b.T.Context(), ports.LaunchRequest{
		JobName: name, Owner: core.Owner{Host: "here", PID: 1, Nonce: name}, Lease: time.Minute, Restartable: true,
	})
	require.NoError(b.T, err)
	b.job = launched.Execution
	b.job.Context = core.NewExecutionContext()
	b.ref = ports.JobRef{ID: b.job.ID, Owner: b.job.Owner, Epoch: b.job.Epoch}
	_, err = b.Repository.ChangeJob(b.T.Context(), b.ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(b.T, err)
}

func (b *bed) run() *model.StepRun {
	job := *b.job
	job.Context = b.job.Context.Clone()
	return &model.StepRun{
		Data: model.StepContext{Job: &job, JobRef: b.ref},
		Services: model.StepServices{
			Checkpoints: b.Repository, Plans: b.Repository, Observer: core.ObserverFunc(b.observe), Stop: model.StopOn(b.stop),
			Promoter: model.PromoterFunc(b.promote),
		},
	}
}

func (b *bed) promote(ctx context.Context, values map[string]any) error {
	c := b.job.Context.Clone()
	for key, value := range values {
		if err := c.Put(key, value); err != nil {
			return err
		}
	}
	return b.Repository.SaveJobContext(ctx, b.ref, c)
}

func (b *bed) do(ctx context.Context, s model.Step, change ...func(*model.StepRun)) core.StepExecution {
	b.T.Helper()
	run := b.run()
	for _, c := range change {
		c(run)
	}
	record, err := b.executor.Execute(ctx, s, run)
	require.NoError(b.T, err)
	stored := b.stored(record.ID)
	require.Equal(b.T, stored.Status, record.Status)
	require.Equal(b.T, stored.ExitCode, record.ExitCode)
	require.Equal(b.T, stored.Error, record.Error)
	require.Equal(b.T, stored.Gate, record.Gate)
	require.Equal(b.T, stored.Counters, record.Counters)
	require.WithinDuration(b.T, stored.EndedAt, record.EndedAt, time.Minute)
	return stored
}

func (b *bed) stored(id core.StepExecutionID) core.StepExecution {
	b.T.Helper()
	steps, err := b.Repository.Steps(b.T.Context(), b.job.ID)
	require.NoError(b.T, err)
	for _, s := range steps {
		if s.ID == id {
			return s
		}
	}
	require.Fail(b.T, "no such step execution")
	return core.StepExecution{}
}

func (b *bed) context() map[string]any {
	b.T.Helper()
	exec, err := b.Repository.Execution(b.T.Context(), b.job.ID)
	require.NoError(b.T, err)
	return valuesOf(exec.Context)
}

func valuesOf(c *core.ExecutionContext) map[string]any {
	values := map[string]any{}
	if c == nil {
		return values
	}
	for _, key := range c.Keys() {
		values[key], _ = c.Get(key)
	}
	return values
}

func (b *bed) tasklet(f core.TaskletFunc, change ...func(*step.TaskletConfig)) *step.TaskletStep {
	b.T.Helper()
	config := step.TaskletConfig{
		Name: "work", Database: b.Database,
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) { return f, nil },
	}
	for _, c := range change {
		c(&config)
	}
	s, err := step.NewTasklet(config)
	require.NoError(b.T, err)
	return s
}

func another(t *testing.T, url string) tx.Database {
	t.Helper()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{"other": {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database("other")
	require.NoError(t, err)
	_, err = db.Conn().ExecContext(t.Context(), "create table out(id bigint, parent bigint)")
	require.NoError(t, err)
	return db
}

func insertInto(ctx context.Context, db tx.Database, id int) error {
	_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "insert into out(id) values ("+itoa(id)+")")
	return err
}

// rolledBack is a COMMIT that the database answered with a rollback.
func rolledBack(h tx.Handle) error { return errors.Join(tx.ErrRolledBack, h.Rollback()) }

func condition(holds func(core.StepExecution) bool, values string) *model.Condition {
	return &model.Condition{
		Text:   "it is well",
		Holds:  func(_ context.Context, v *core.View) (bool, error) { return holds(*v.Step), nil },
		Values: func(*core.View) string { return values },
	}
}

type noted struct {
	name   string
	log    *[]string
	fail   map[string]error
	panics string
	change func(*core.StepExecution)
}

func (l *noted) note(what string) error {
	*l.log = append(*l.log, l.name+" "+what)
	if l.panics == what {
		panic("lost my head")
	}
	return l.fail[what]
}

func (l *noted) BeforeStep(_ context.Context, s *core.StepExecution) error {
	if s.Status != core.StatusStarted || s.StartedAt.IsZero() {
		return errors.New("it has not started")
	}
	return l.note("before")
}

func (l *noted) AfterStep(_ context.Context, s *core.StepExecution) error {
	*l.log = append(*l.log, l.name+" sees "+string(s.Status)+"/"+s.ExitCode)
	if l.change != nil {
		l.change(s)
	}
	return l.note("after")
}

func (l *noted) Close(context.Context) error { return l.note("close") }

func listening(list ...any) func(*step.TaskletConfig) {
	return func(c *step.TaskletConfig) {
		c.Listeners = func(context.Context, *model.StepRun) ([]any, error) { return list, nil }
	}
}
