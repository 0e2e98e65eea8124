package prometheus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	logging "log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type observed struct {
	*testengine.Engine
	t        *testing.T
	metrics  *prometheus.Metrics
	log      *logged
	launcher *job.Launcher
}

func newObserved(t *testing.T, url string, fails func(write string, to core.Status) error) *observed {
	t.Helper()
	o := &observed{Engine: testengine.New(t, url), t: t, metrics: prometheus.New(), log: &logged{}}
	log := logging.New(logging.NewJSONHandler(o.log, &logging.HandlerOptions{Level: logging.LevelDebug}))
	observer := core.Observers(o.metrics, slog.New(log))
	repo := repository.New(o.Database, repository.Options{Observer: observer}).Ports()
	repo.Transitions = &failingRepository{Transitions: repo.Transitions, fails: fails}
	var err error
	o.launcher, err = job.NewLauncher(job.Config{
		Repository: repo, Observer: observer, Executor: step.NewSimpleStepExecutor(repo, o.Database.Name(), observer),
		Lease: time.Minute, Heartbeat: time.Second,
	})
	require.NoError(t, err)
	return o
}

func (o *observed) series() series {
	o.t.Helper()
	registry := client.NewRegistry()
	require.NoError(o.t, registry.Register(o.metrics))
	families, err := registry.Gather()
	require.NoError(o.t, err)
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return flatten(all)
}

func (o *observed) events(event string) []string {
	o.t.Helper()
	var list []string
	for _, line := range strings.Split(strings.TrimSpace(o.log.text()), "\n") {
		var r struct{ Event, Step, Status, To string }
		require.NoError(o.t, json.Unmarshal([]byte(line), &r))
		if r.Event == event {
			list = append(list, strings.TrimSpace(r.Step+" "+r.Status+r.To))
		}
	}
	return list
}

func (o *observed) agrees() {
	o.t.Helper()
	s := o.series()
	require.Zero(o.t, s.sum("surfin_jobs_running"))
	require.Zero(o.t, s.sum("surfin_steps_running"))
	var statuses []string
	rows, err := o.Database.Conn().QueryContext(o.t.Context(), "SELECT name, status FROM surfin_step_execution ORDER BY id")
	require.NoError(o.t, err)
	defer rows.Close()
	counts := map[string]float64{}
	for rows.Next() {
		var name, status string
		require.NoError(o.t, rows.Scan(&name, &status))
		statuses = append(statuses, name+" "+status)
		counts[name+" "+status]++
	}
	require.NoError(o.t, rows.Err())
	require.ElementsMatch(o.t, statuses, o.events("step.ended"), "what was logged is what is stored")
	for key, n := range counts {
		name, status, _ := strings.Cut(key, " ")
		require.InDelta(o.t, n, s.sum("surfin_step_executions_total", fmt.Sprintf("step=%q", name), fmt.Sprintf("status=%q", status)), 0, key)
	}
	require.InDelta(o.t, float64(len(statuses)), s.sum("surfin_step_executions_total"), 0)
}

// agreesOnTransitions checks that committed transitions are counted.
func (o *observed) agreesOnTransitions() {
	o.t.Helper()
	audits := o.Ints("SELECT count(*) FROM surfin_audit WHERE to_status <> ''")
	require.InDelta(o.t, float64(audits[0]), o.series().sum("surfin_transitions_total", `result="applied"`), 0, "a transition that is rolled back is not counted")
}

type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// failingRepository is a real repository in which some writes fail before they are made.
type failingRepository struct {
	ports.Transitions
	fails func(write string, to core.Status) error
}

func (r *failingRepository) ChangeJob(ctx context.Context, ref ports.JobRef, c ports.JobChange) (core.Answer, error) {
	if r.fails != nil {
		if err := r.fails("job", c.To); err != nil {
			return "", err
		}
	}
	return r.Transitions.ChangeJob(ctx, ref, c)
}

func (r *failingRepository) EndStep(ctx context.Context, ref ports.StepRef, c ports.StepChange) (core.Answer, error) {
	if r.fails != nil {
		if err := r.fails("step", c.To); err != nil {
			return "", err
		}
	}
	return r.Transitions.EndStep(ctx, ref, c)
}

func (o *observed) tasklet(name string, attr tx.Attr, err error) *model.StepElement {
	return o.Tasklet(name, attr, func(context.Context, *core.StepContribution) error { return err })
}

func (o *observed) group(name string, do func(ctx context.Context, f func(context.Context) error) error, steps ...*model.StepElement) *model.AtomicElement {
	flow := testengine.Job("", steps...).Flow
	if do == nil {
		manager := tx.NewManager(o.Database)
		do = func(ctx context.Context, f func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, f) }
	}
	return &model.AtomicElement{Name: name, Database: o.Database.Name(), Flow: flow, Do: do}
}

func (o *observed) run(elements ...model.Element) *core.JobExecution {
	o.t.Helper()
	exec, err := o.launcher.Run(o.t.Context(), &model.Job{Name: "job", Restartable: true, Flow: model.Flow{Elements: elements}}, core.Parameters{}, nil)
	require.NoError(o.t, err)
	return exec
}

// Rule R7.
func TestAStepOfAGroupThatIsRolledBackIsReportedAsCompletedToNoOne(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, elements := range map[string]func(o *observed) model.Element{
		"a later step fails": func(o *observed) model.Element {
			return o.group("g", nil, o.tasklet("a", tx.Attr{}, nil), o.tasklet("b", tx.Attr{}, nil), o.tasklet("c", tx.Attr{}, boom))
		},
		"the commit fails": func(o *observed) model.Element {
			manager := tx.NewManager(o.Database)
			return o.group("g", func(ctx context.Context, f func(context.Context) error) error {
				return manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
					if err := f(ctx); err != nil {
						return err
					}
					return boom
				})
			}, o.tasklet("a", tx.Attr{}, nil), o.tasklet("b", tx.Attr{}, nil))
		},
		"the answer to the commit is lost": func(o *observed) model.Element {
			manager := tx.NewManager(testengine.Committing{Database: o.Database, Commit: testengine.LostBefore})
			return o.group("g", func(ctx context.Context, f func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, f) },
				o.tasklet("a", tx.Attr{}, nil), o.tasklet("b", tx.Attr{}, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				o := newObserved(t, url, nil)
				require.Equal(t, core.StatusFailed, o.run(elements(o)).Status)
				require.NotContains(t, o.log.text(), `"status":"COMPLETED"`)
				require.NotContains(t, strings.ToLower(o.log.text()), `"to":"completed"`)
				require.Zero(t, o.series().sum("surfin_step_executions_total", `status="COMPLETED"`))
				o.agrees()
				o.agreesOnTransitions()
			})
		})
	}
}

func TestAStepOfAGroupThatCommitsIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]func(tx.Handle) error{"commits": tx.Handle.Commit, "the answer is lost": testengine.LostAfter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				o := newObserved(t, url, nil)
				manager := tx.NewManager(testengine.Committing{Database: o.Database, Commit: commit})
				exec := o.run(o.group("g", func(ctx context.Context, f func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, f) },
					o.tasklet("a", tx.Attr{}, nil), o.tasklet("b", tx.Attr{}, nil)))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.ElementsMatch(t, []string{"a COMPLETED", "b COMPLETED"}, o.events("step.ended"))
				o.agrees()
				if name == "commits" { // else it is not known which transitions are committed
					o.agreesOnTransitions()
				}
			})
		})
	}
}

func TestTheEndsOfAGroupThatCouldNotBeRecordedAreReported(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		gone := errors.New("the disk is full")
		o := newObserved(t, url, func(write string, to core.Status) error {
			if write == "step" && to == core.StatusFailed {
				return gone
			}
			return nil
		})
		group := o.group("g", nil, o.tasklet("a", tx.Attr{}, nil), o.tasklet("b", tx.Attr{}, errors.New("boom")))
		exec := o.run(group)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, gone.Error())
		require.Empty(t, o.events("step.ended"))
		require.Equal(t, []string{"a FAILED", "b FAILED"}, o.events("end.not_recorded"))
		require.Equal(t, []string{"FAILED"}, o.events("job.ended"))
		require.Zero(t, o.series().sum("surfin_jobs_running"))
		require.Zero(t, o.series().sum("surfin_steps_running"))
	})
}

func TestAnEndThatCouldNotBeRecordedIsReportedAndTheGaugesFall(t *testing.T) {
	t.Parallel()
	gone := errors.New("the disk is full")
	for name, c := range map[string]struct {
		write string
		want  string
	}{"of the job": {"job", "COMPLETED"}, "of a step": {"step", "s COMPLETED"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				o := newObserved(t, url, func(write string, to core.Status) error {
					if write == c.write && to.IsOver() {
						return gone
					}
					return nil
				})
				_, err := o.launcher.Run(t.Context(), &model.Job{Name: "job", Restartable: true, Flow: model.Flow{Elements: []model.Element{
					o.tasklet("s", tx.Attr{Propagation: tx.NotSupported}, nil),
				}}}, core.Parameters{}, nil)
				if c.write == "job" {
					require.ErrorIs(t, err, gone)
					require.Empty(t, o.events("job.ended"))
				} else {
					require.NoError(t, err)
					require.Empty(t, o.events("step.ended"))
				}
				require.Equal(t, []string{c.want}, o.events("end.not_recorded"))
				require.Zero(t, o.series().sum("surfin_jobs_running"))
				require.Zero(t, o.series().sum("surfin_steps_running"))
			})
		})
	}
}

func TestAnObserverThatPanicsLeavesNothingStarted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for name, fails := range map[string]error{"completed": nil, "failed": errors.New("boom")} {
			o := newObserved(t, url, nil)
			bad := core.ObserverFunc(func(context.Context, core.Event) { panic("no") })
			repo := repository.New(o.Database, repository.Options{Observer: bad})
			launcher, err := job.NewLauncher(job.Config{
				Repository: repo.Ports(), Observer: core.Observers(bad, o.metrics), Executor: step.NewSimpleStepExecutor(repo, o.Database.Name(), core.Observers(bad, o.metrics)),
			})
			require.NoError(t, err)
			exec, err := launcher.Run(t.Context(), &model.Job{Name: name, Restartable: true, Flow: model.Flow{Elements: []model.Element{
				o.group("g", nil, o.tasklet("a", tx.Attr{}, nil), o.tasklet("b", tx.Attr{}, fails)),
			}}}, core.Parameters{}, nil)
			require.NoError(t, err)
			stored, err := repo.Execution(t.Context(), exec.ID)
			require.NoError(t, err)
			require.Equal(t, strings.ToUpper(name), string(stored.Status))
			require.Empty(t, o.Ints("SELECT id FROM surfin_step_execution WHERE status IN ('STARTING', 'STARTED')"))
			require.Zero(t, o.series().sum("surfin_jobs_running"))
			require.Zero(t, o.series().sum("surfin_steps_running"))
		}
	})
}
