package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	wideParts = 8
	partRows  = 4
)

// The databases have the same writes in different statements: where it dies
// before one on SQLite, it dies after it on PostgreSQL.
func TestNothingIsLostOrTwiceThoughAProcessDiesAtAnyWrite(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, part text NOT NULL, n bigint NOT NULL)")
		calm := &scene{Engine: e, name: "calm"}
		calm.untilOver()
		calm.check("no death")
		names := map[string]int{}
		for i, write := range calm.writes {
			if names[write]++; names[write] > 3 && i%9 != 0 || testengine.Few() && i%5 != 0 { // partitions are alike
				continue
			}
			for _, after := range []bool{false, true} {
				if after != (i%2 == 0) == (e.Database.Dialect() == tx.Postgres) && os.Getenv("SURFIN_SOAK") == "" {
					continue
				}
				s := &scene{Engine: e, name: fmt.Sprint("job", i, after), left: i + 1, after: after}
				s.untilOver()
				require.Equal(t, write, s.writes[i])
				s.check(fmt.Sprintf("death at write %d, %s, after it: %t", i, write, after))
			}
		}
		for _, write := range []string{"Launch", "PlanPartitions", "Park", "AssignPartition", "Checkpoint", "EndStep", "Resume", "SaveJobContext", "ChangeJob"} {
			require.Positive(t, names[write], write)
		}
	})
}

// scene is one job and the processes that run it. The process that makes the write that brings left
// to zero dies.
type scene struct {
	*testengine.Engine
	name   string
	left   int
	after  bool
	writes []string

	processes int
	mu        sync.Mutex
	dead      map[int]bool
	heard     map[string]int
	over      *core.JobExecution
}

func (s *scene) untilOver() {
	s.dead, s.heard = map[int]bool{}, map[string]int{}
	for range 20 {
		if s.manager(); s.over != nil {
			return
		}
		for range 5 {
			if s.worker(); s.over != nil {
				return
			}
			last, err := s.Repository.LastExecution(s.T.Context(), s.name, core.Parameters{}.Key())
			if errors.Is(err, core.ErrNotFound) || err == nil && last.Owner != (core.Owner{}) {
				break // a launch takes it over
			}
			require.NoError(s.T, err)
		}
	}
	s.T.Fatalf("%s comes to no end", s.name)
}

func (s *scene) check(about string) {
	t := s.T
	require.Equal(t, core.StatusCompleted, s.over.Status, "%s: %s", about, s.over.Error)
	require.Equal(t, []int64{wideParts * partRows, wideParts * partRows, 2 * partRows, 2 * partRows, 1, 1}, s.Ints(fmt.Sprintf(
		`SELECT c FROM (SELECT 1 AS o, count(*) AS c FROM done WHERE job = '%[1]s' AND part LIKE 'wide%%'
			UNION ALL SELECT 2, count(*) FROM (SELECT DISTINCT part, n FROM done WHERE job = '%[1]s' AND part LIKE 'wide%%') AS d
			UNION ALL SELECT 3, count(*) FROM done WHERE job = '%[1]s' AND part LIKE 'narrow%%'
			UNION ALL SELECT 4, count(*) FROM (SELECT DISTINCT part, n FROM done WHERE job = '%[1]s' AND part LIKE 'narrow%%') AS d
			UNION ALL SELECT 5, count(*) FROM done WHERE job = '%[1]s' AND part = 'last'
			UNION ALL SELECT 6, count(DISTINCT n) FROM done WHERE job = '%[1]s' AND part = 'last') AS x ORDER BY o`, s.name)), about)
	exec, err := s.Repository.Execution(t.Context(), s.over.ID)
	require.NoError(t, err)
	for _, key := range []string{"narrow", "last"} {
		value, _ := exec.Context.Get(key)
		require.Equal(t, true, value, "%s: %s was promoted", about, key)
	}
	for call, n := range s.heard {
		require.Equal(t, 1, n, "%s: %s", about, call)
	}
	for _, call := range []string{"BeforeJob", "AfterJob"} {
		require.Equal(t, 1, s.heard[fmt.Sprint(call, " ", s.over.ID)], "%s: %s", about, call)
	}
	require.Empty(t, s.Ints(fmt.Sprintf(`SELECT id FROM surfin_step_execution WHERE job_name = '%s' AND status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING')`, s.name)), about)
}

func (s *scene) job() *model.Job {
	inner, err := step.NewTasklet(step.TaskletConfig{
		Name: "last", Database: s.Database, Promote: &model.Promotion{Keys: map[string]string{"done": "last"}},
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
				_, err := tx.ConnOf(ctx, s.Database).ExecContext(ctx, "INSERT INTO done (job, part, n) VALUES ('"+s.name+"', 'last', 0)")
				return errors.Join(err, c.Context.Put("done", true))
			}), nil
		},
	})
	require.NoError(s.T, err)
	j := testengine.Job(s.name, s.partitioned("wide", wideParts), s.partitioned("narrow", 2), &model.StepElement{Step: inner})
	j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{jobListener{s}}, nil }
	return j
}

func (s *scene) partitioned(name string, parts int) *model.StepElement {
	inner, err := chunk.New(chunk.Config{
		Name: name, Size: 2, Database: s.Database,
		Assemble: func(_ context.Context, run *model.StepRun) (chunk.Parts, error) {
			w := &rows{scene: s, part: run.Data.Name}
			return chunk.Parts{
				Reader:     item.EraseReader[int64](&count{}),
				Processors: []item.Processor{item.EraseProcessor[int64, int64](same{})}, Writers: []item.Writer{item.EraseWriter[int64](w)},
			}, nil
		},
	})
	require.NoError(s.T, err)
	outer, err := step.NewPartitioned(step.PartitionConfig{
		Step: inner, OnWorkers: true, Promote: &model.Promotion{Keys: map[string]string{"heard": name}},
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return partsOf(parts), nil },
		Listeners:   func(context.Context, *model.StepRun) ([]any, error) { return []any{stepListener{s}}, nil },
	})
	require.NoError(s.T, err)
	return &model.StepElement{Step: outer}
}

func (s *scene) hears(call string, id any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[fmt.Sprint(call, " ", id)]++
}

type jobListener struct{ scene *scene }

func (l jobListener) BeforeJob(_ context.Context, e *core.JobExecution) error {
	l.scene.hears("BeforeJob", e.ID)
	return nil
}

func (l jobListener) AfterJob(_ context.Context, e *core.JobExecution) error {
	l.scene.hears("AfterJob", e.ID)
	return nil
}

type stepListener struct{ scene *scene }

func (l stepListener) BeforeStep(_ context.Context, e *core.StepExecution) error {
	l.scene.hears("BeforeStep", e.ID)
	return e.Context.Put("heard", true)
}

func (l stepListener) AfterStep(_ context.Context, e *core.StepExecution) error {
	l.scene.hears("AfterStep", e.ID)
	return nil
}

type partsOf int

func (n partsOf) Partition(context.Context, *core.View) ([]core.Partition, error) {
	parts := make([]core.Partition, n)
	for i := range parts {
		parts[i].Name = fmt.Sprint(i)
	}
	return parts, nil
}

type count struct{ next int64 }

func (c *count) Open(_ context.Context, at item.Position) error {
	if len(at) == 0 {
		return nil
	}
	return json.Unmarshal(at, &c.next)
}

func (c *count) Read(context.Context) (int64, error) {
	if c.next == partRows {
		return 0, io.EOF
	}
	c.next++
	return c.next, nil
}

func (c *count) Position() (item.Position, error) { return json.Marshal(c.next) }

type same struct{}

func (same) Process(_ context.Context, n int64) (int64, error) { return n, nil }

type rows struct {
	scene *scene
	part  string
}

func (r *rows) Write(ctx context.Context, items []int64) error {
	for _, n := range items {
		_, err := tx.ConnOf(ctx, r.scene.Database).ExecContext(ctx, fmt.Sprintf("INSERT INTO done (job, part, n) VALUES ('%s', '%s', %d)", r.scene.name, r.part, n))
		if err != nil {
			return err
		}
	}
	return nil
}

type process struct {
	*mortal
	owner    core.Owner
	launcher *job.Launcher
	executor func(ports.Transitions) model.StepExecutor
}

func (s *scene) process() *process {
	s.processes++
	p := &process{mortal: newMortal(s), owner: core.Owner{Host: "here", PID: s.processes}}
	p.executor = func(t ports.Transitions) model.StepExecutor {
		return step.NewSimpleStepExecutor(t, s.Database.Name(), nil)
	}
	var err error
	p.launcher, err = job.NewLauncher(job.Config{
		Repository: p.mortal.Ports(), Executor: p.executor(p.mortal), Owner: p.owner, Dead: s.isDead,
		Lease: time.Hour, Heartbeat: 10 * time.Minute,
	})
	require.NoError(s.T, err)
	return p
}

func (s *scene) isDead(o core.Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead[o.PID]
}

func (s *scene) manager() {
	p := s.process()
	ctx, cancel := context.WithCancel(s.T.Context())
	defer cancel()
	p.parked = cancel
	exec, err := p.launcher.Run(ctx, s.job(), core.Parameters{}, nil)
	p.die()
	s.holdsNoConnection()
	switch {
	case errors.As(err, new(*ports.InstanceCompleteError)):
		s.over, err = s.Repository.LastExecution(s.T.Context(), s.name, core.Parameters{}.Key())
		require.NoError(s.T, err)
	case err == nil && exec.Status.IsOver():
		s.over = exec
	}
}

// holdsNoConnection checks the server. On SQLite the workers could not write.
func (s *scene) holdsNoConnection() {
	if s.Database.Dialect() != tx.Postgres {
		return
	}
	require.Equal(s.T, []int64{0}, s.Ints("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND backend_type = 'client backend' AND pid <> pg_backend_pid()"))
}

// worker runs with one slot, until it dies, the job has ended or there is nothing to do: neither a
// parked execution nor a resumed one keeps the slot from partitions.
func (s *scene) worker() {
	p := s.process()
	stop := make(chan struct{})
	p.ended = sync.OnceFunc(func() { close(stop) })
	silent, err := local.New(local.Config{Database: s.Database, Source: runtime.Waiting{}}) // only polls find it: the writes come in one order
	require.NoError(s.T, err)
	w, err := runtime.NewWorker(runtime.Config{Lease: time.Hour, Heartbeat: 10 * time.Minute, Poll: time.Millisecond, Sweep: time.Millisecond, Parts: &runtime.Parts{
		Repository: p.mortal.Ports(), Engine: silent, Owner: p.owner, Executor: p.executor,
		Job:      func(context.Context, core.JobExecution) (*model.Job, error) { return s.job(), nil },
		Services: model.StepServices{Owners: model.OwnersFunc(s.isDead)},
		Resume: func(ctx context.Context, j *model.Job, id core.JobExecutionID, stop <-chan struct{}) error {
			exec, err := p.launcher.Resume(ctx, j, id, job.Resumption{Release: stop})
			if err == nil && exec.Status.IsOver() {
				s.over = exec
				p.ended()
			}
			return err
		},
	}})
	require.NoError(s.T, err)
	require.NoError(s.T, w.Run(s.T.Context(), stop))
	p.die()
}
