// Package testengine assembles the real engine on a real database for tests of
// chunk, step and job.
//
// It imports the engine and adaptor/database/gorm. Only tests import it.
package testengine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Engine is repository, executor and launcher on one database.
type Engine struct {
	T          testing.TB
	Provider   tx.Provider
	Database   tx.Database
	Repository *repository.Repository
	Launcher   *job.Launcher

	mu     sync.Mutex
	events []core.Event
}

// New opens the database, migrates and builds the engine; change may alter
// the launcher's configuration.
func New(t testing.TB, url string, change ...func(*job.Config)) *Engine {
	t.Helper()
	return On(t, gormdb.Config{URL: url}, change...)
}

// On is New on a database with the given configuration.
func On(t testing.TB, database gormdb.Config, change ...func(*job.Config)) *Engine {
	t.Helper()
	ctx := context.Background()
	provider, db := open(t, database)
	e := &Engine{T: t, Provider: provider, Database: db}
	e.Repository = repository.New(db, repository.Options{Observer: core.ObserverFunc(e.observe)})
	require.NoError(t, e.Repository.Migrate(ctx))
	config := job.Config{
		Repository: e.Repository.Ports(), Observer: core.ObserverFunc(e.observe),
		Executor: step.NewSimpleStepExecutor(e.Repository, db.Name(), core.ObserverFunc(e.observe)),
		Lease:    time.Minute, Heartbeat: 20 * time.Millisecond,
	}
	for _, c := range change {
		c(&config)
	}
	var err error
	e.Launcher, err = job.NewLauncher(config)
	require.NoError(t, err)
	return e
}

// Database opens the database and closes it after the test.
func Database(t testing.TB, url string) (tx.Provider, tx.Database) {
	t.Helper()
	return open(t, gormdb.Config{URL: url})
}

func open(t testing.TB, database gormdb.Config) (tx.Provider, tx.Database) {
	t.Helper()
	provider, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: database})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	return provider, db
}

// EachDatabase runs f on an empty database of every kind.
func EachDatabase(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, url string) {
		_, db := Database(t, url)
		f(t, db)
	})
}

// AllDatabases is EachDatabase with MariaDB.
func AllDatabases(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	testdb.All(t, func(t *testing.T, url string) {
		_, db := Database(t, url)
		f(t, db)
	})
}

// Exec runs a statement outside of any transaction.
func Exec(t require.TestingT, db tx.Database, statement string, args ...any) {
	_, err := db.Conn().ExecContext(context.Background(), statement, args...)
	require.NoError(t, err, statement)
}

func (e *Engine) observe(_ context.Context, event core.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
}

// Events returns the events so far.
func (e *Engine) Events() []core.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]core.Event(nil), e.events...)
}

// Exec runs a statement outside of any transaction.
func (e *Engine) Exec(query string, args ...any) {
	e.T.Helper()
	Exec(e.T, e.Database, query, args...)
}

// Ints reads one column of ints.
func (e *Engine) Ints(query string) []int64 {
	e.T.Helper()
	rows, err := e.Database.Conn().QueryContext(context.Background(), query)
	require.NoError(e.T, err, query)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	list := []int64{}
	for rows.Next() {
		var n int64
		require.NoError(e.T, rows.Scan(&n))
		list = append(list, n)
	}
	require.NoError(e.T, rows.Err())
	return list
}

// Job returns a job of these steps in sequence.
func Job(name string, elements ...*model.StepElement) *model.Job {
	j := &model.Job{Name: name, Restartable: true, Definition: core.Definition{Hash: "test", Text: "test"}}
	for i, e := range elements {
		if e.Next == nil && i+1 < len(elements) {
			e.Next = []model.Transition{{Pattern: core.ExitCompleted, Target: model.Target{Kind: model.TargetElement, Name: elements[i+1].ElementName()}}}
		}
		j.Flow.Elements = append(j.Flow.Elements, e)
	}
	return j
}

// Run launches the job without parameters.
func (e *Engine) Run(j *model.Job) *core.JobExecution {
	e.T.Helper()
	exec, err := e.Launcher.Run(context.Background(), j, core.Parameters{}, nil)
	require.NoError(e.T, err)
	return exec
}

// Step returns the named step of an execution, as the database has it.
func (e *Engine) Step(exec *core.JobExecution, name string) core.StepExecution {
	e.T.Helper()
	steps, err := e.Repository.Steps(context.Background(), exec.ID)
	require.NoError(e.T, err)
	for _, s := range steps {
		if s.Name == name {
			return s
		}
	}
	require.Fail(e.T, "no such step", name)
	return core.StepExecution{}
}

// Chunk returns an element with a chunk step of these parts.
func Chunk[I, O any](e *Engine, name string, size int, make func() (item.ItemReader[I], item.ItemProcessor[I, O], item.ItemWriter[O])) *model.StepElement {
	e.T.Helper()
	s, err := chunk.New(chunk.Config{
		Name: name, Size: size, Database: e.Database,
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			r, p, w := make()
			return chunk.Parts{
				Reader: item.EraseReader(r), Processors: []item.Processor{item.EraseProcessor(p)}, Writers: []item.Writer{item.EraseWriter(w)},
			}, nil
		},
	})
	require.NoError(e.T, err)
	return &model.StepElement{Step: s}
}

// Tasklet returns an element with a tasklet step.
func (e *Engine) Tasklet(name string, attr tx.Attr, f core.TaskletFunc) *model.StepElement {
	e.T.Helper()
	s, err := step.NewTasklet(step.TaskletConfig{
		Name: name, Database: e.Database, Attr: attr,
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) { return f, nil },
	})
	require.NoError(e.T, err)
	return &model.StepElement{Step: s}
}
