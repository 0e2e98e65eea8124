// Package repositorytest is the conformance suite of a ports.Repository: it checks rules D1 to
// D6, L1, L2, L5, L6, R1 to R3 and T5 on a real database.
//
// It imports core and tx. Only tests import it.
package repositorytest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Fixture is one database with only the repository's tables in it.
type Fixture struct {
	Connect func(t *testing.T) tx.Database
	New     func(db tx.Database, observer core.Observer) ports.Repository
	Prefix  string
}

// Run runs the suite; open creates a new database for each test.
func Run(t *testing.T, open func(t *testing.T) *Fixture) {
	for _, group := range [][]test{launchTests(), leaseTests(), takeOverTests(), transitionTests(), stepTests(), checkpointTests(), skipTests(), explorerTests(),
		partitionTests(), parkTests(), assignTests(), operationTests(), listingTests(), purgeTests(), journalTests(), stormTests(), costTests(), requestTests(), seriesTests()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(newBench(t, open(t)))
			})
		}
	}
}

type test struct {
	name string
	run  func(b *bench)
}

type bench struct {
	*testing.T
	*Fixture
	ctx    context.Context
	db     tx.Database
	repo   ports.Repository
	events *events
}

func newBench(t *testing.T, f *Fixture) *bench {
	b := &bench{T: t, Fixture: f, ctx: t.Context(), db: f.Connect(t), events: &events{}}
	b.repo = f.New(b.db, b.events)
	return b
}

func (b *bench) other() ports.Repository { return b.New(b.Connect(b.T), nil) }

type events struct {
	mu   sync.Mutex
	list []core.Transitioned
}

func (e *events) Observe(_ context.Context, event core.Event) {
	if t, ok := event.(core.Transitioned); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.list = append(e.list, t)
	}
}

func (e *events) take() []core.Transitioned {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}

func (e *events) last() core.Transitioned {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.list[len(e.list)-1]
}

func owner(name string) core.Owner {
	return core.Owner{Host: "host-" + name, Boot: "boot", PID: 4711, Start: "12345", Nonce: name}
}

func dead(core.Owner) bool { return true }

func (b *bench) params(ps ...core.Parameter) core.Parameters {
	b.Helper()
	params, err := core.NewParameters(ps...)
	require.NoError(b, err)
	return params
}

func definition() core.Definition {
	return ports.NewDefinition("job: load\n", "/jobs/load.yaml", []core.DefinitionFile{
		{Name: "parts/b.yaml", Text: "job: b # \"ü\"\n", Path: "/jobs/parts/b.yaml"}, {Name: "a.yaml", Text: "job: a\n"},
	})
}

func (b *bench) request(name string, day int64) ports.LaunchRequest {
	b.Helper()
	return ports.LaunchRequest{
		JobName: "load", Restartable: true, Owner: owner(name), Lease: time.Hour,
		Params:     b.params(core.Parameter{Name: "day", Type: core.TypeInt, Value: day, Identifying: true}),
		Definition: definition(),
	}
}

func (b *bench) launch(name string, day int64) *core.JobExecution {
	b.Helper()
	launched, err := b.repo.Launch(b.ctx, b.request(name, day))
	require.NoError(b, err)
	return launched.Execution
}

func (b *bench) started(name string, day int64) (*core.JobExecution, ports.JobRef) {
	b.Helper()
	exec := b.launch(name, day)
	b.change(jobRef(exec), ports.JobChange{To: core.StatusStarted})
	return exec, jobRef(exec)
}

func (b *bench) change(ref ports.JobRef, change ports.JobChange) {
	b.Helper()
	answer, err := b.repo.ChangeJob(b.ctx, ref, change)
	require.NoError(b, err)
	require.Equal(b, core.Applied, answer)
}

func (b *bench) step(ref ports.JobRef, name string, earlier *core.StepExecution) (*core.StepExecution, ports.StepRef) {
	b.Helper()
	step, err := b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: name, Earlier: earlier})
	require.NoError(b, err)
	return step, ports.StepRef{ID: step.ID, Owner: step.Owner, Epoch: step.Epoch}
}

func (b *bench) end(ref ports.StepRef, change ports.StepChange) {
	b.Helper()
	answer, err := b.repo.EndStep(b.ctx, ref, change)
	require.NoError(b, err)
	require.Equal(b, core.Applied, answer)
}

func (b *bench) checkpoint(ref ports.StepRef, c ports.Checkpoint) error {
	return tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		return b.repo.Checkpoint(ctx, ref, c)
	})
}

func (b *bench) execution(id core.JobExecutionID) *core.JobExecution {
	b.Helper()
	exec, err := b.repo.Execution(b.ctx, id)
	require.NoError(b, err)
	return exec
}

func (b *bench) onlyStep(id core.JobExecutionID) core.StepExecution {
	b.Helper()
	steps, err := b.repo.Steps(b.ctx, id)
	require.NoError(b, err)
	require.Len(b, steps, 1)
	return steps[0]
}

func (b *bench) exec(statement string, args ...any) {
	b.Helper()
	_, err := b.db.Conn().ExecContext(b.ctx, b.prefixed(statement), args...)
	require.NoError(b, err)
}

func (b *bench) prefixed(statement string) string { return fmt.Sprintf(statement, b.Prefix) }

func (b *bench) count(from string, args ...any) int {
	b.Helper()
	var n int
	require.NoError(b, b.db.Conn().QueryRowContext(b.ctx, b.prefixed("SELECT count(*) FROM "+from), args...).Scan(&n))
	return n
}

func (b *bench) force(table string, id int64, status core.Status) {
	b.Helper()
	d := b.db.Dialect()
	b.exec("UPDATE %s"+table+" SET last_move = '', last_epoch = 0, status = "+d.Placeholder(1)+" WHERE id = "+d.Placeholder(2), string(status), id)
}

func jobRef(e *core.JobExecution) ports.JobRef {
	return ports.JobRef{ID: e.ID, Owner: e.Owner, Epoch: e.Epoch}
}

func statuses() []core.Status { return core.Statuses() }

func legal(move string, current core.Status) core.Answer {
	return ports.Executions().Answer(move, 1, current, core.Mark{})
}
