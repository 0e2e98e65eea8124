package job_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAFlowThatDiesAtAnyWriteDoesItsWorkOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		for name, flow := range map[string]func(w *weather) model.Flow{
			"partitions in a loop": func(w *weather) model.Flow {
				return w.rounds(w.partitioned("p", 2))
			},
			"a child job in a loop": func(w *weather) model.Flow {
				return w.rounds(w.child("c", "m"))
			},
			"a flow with a record in a loop": func(w *weather) model.Flow {
				inner := model.Flow{Elements: []model.Element{w.step("a"), w.partitioned("p", 2)}}
				w.lead(inner.Elements[0], "p")
				return w.rounds(&model.FlowElement{Name: "f", AsStep: true, Flow: inner})
			},
			"partitions beside a group": func(w *weather) model.Flow {
				return w.rounds(&model.SplitElement{Name: "s", Branches: []model.Flow{
					{Elements: []model.Element{w.partitioned("p", 2)}}, {Elements: []model.Element{w.group("g")}},
				}})
			},
		} {
			calm := &weather{Engine: e, name: name}
			exec, err := calm.launch(calm.ofFlow(flow))
			require.NoError(t, err, name)
			require.Equal(t, core.StatusCompleted, exec.Status, name, exec.Error)
			want := calm.done(t)
			each := 1
			switch {
			case isSoak():
			case len(want) > 6 && onSQLite(url): // large flows, alternating before and after a write
				each = 7
			case len(want) > 6: // PostgreSQL differs in statements, not in the walk
				each = 19
			case !onSQLite(url):
				each = 11
			}
			for kill, died := 0, true; died; kill += rarely(each) {
				w := &weather{Engine: e, name: fmt.Sprintf("%s %d", name, kill), killAt: &killAt{write: kill / 2, after: kill%2 == 1}}
				j := w.ofFlow(flow)
				_, err := w.launch(j)
				died = w.killAt.happened
				require.True(t, !died || err != nil, "%s, death %d", name, kill)
				w.killAt = nil
				if exec, err := w.launch(j); !errors.As(err, new(*ports.InstanceCompleteError)) { // it died right after its end
					require.NoError(t, err, "%s, death %d", name, kill)
					require.Equal(t, core.StatusCompleted, exec.Status, "%s, death %d: %s", name, kill, exec.Error)
				}
				require.Equal(t, want, w.done(t), "%s, death %d", name, kill)
			}
		}
	})
}

type killAt struct {
	mu       sync.Mutex
	write    int
	after    bool
	happened bool
}

func (k *killAt) strikes() (before, after bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write--
	if k.write != -1 {
		return false, false
	}
	k.happened = true
	return !k.after, k.after
}

func (w *weather) ofFlow(flow func(w *weather) model.Flow) *model.Job {
	return &model.Job{Name: w.name, Restartable: true, Definition: core.Definition{Hash: "x", Text: "x"}, Flow: flow(w)}
}

func (w *weather) rounds(at model.Element) model.Flow {
	marker := w.step("m")
	w.lead(at, "m")
	w.lead(marker, "d")
	return model.Flow{Elements: []model.Element{at, marker, &model.DecisionElement{
		Name: "d",
		Decide: func(context.Context, *core.View) (string, error) {
			return []string{"ON", "AGAIN"}[w.rows("m")%2], nil
		},
		Next: []model.Transition{{Pattern: "AGAIN", Target: model.Target{Kind: model.TargetElement, Name: at.ElementName()}}},
	}}}
}

func (w *weather) partitioned(name string, parts int) *model.StepElement {
	inner, err := step.NewTasklet(step.TaskletConfig{
		Name: name, Database: w.Database, Attr: tx.Attr{},
		Assemble: func(_ context.Context, run *model.StepRun) (core.Tasklet, error) {
			return w.working(name + ":" + run.Data.Part.Name), nil
		},
	})
	require.NoError(w.T, err)
	s, err := step.NewPartitioned(step.PartitionConfig{
		Step: inner, Workers: 2,
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) {
			return partsOf(parts), nil
		},
	})
	require.NoError(w.T, err)
	return &model.StepElement{Step: s}
}

type partsOf int

func (n partsOf) Partition(context.Context, *core.View) ([]core.Partition, error) {
	parts := make([]core.Partition, n)
	for i := range parts {
		parts[i].Name = strconv.Itoa(i)
	}
	return parts, nil
}

func (w *weather) child(name, rounds string) *model.StepElement {
	inner := &model.Job{
		Name: w.name + "/" + name, Restartable: true, Definition: core.Definition{Hash: "x", Text: "x"},
		Flow: model.Flow{Elements: []model.Element{w.step("a" + name), w.step("b" + name)}},
	}
	w.lead(inner.Flow.Elements[0], "b"+name)
	s, err := step.NewJob(step.JobConfig{
		Name: name, Job: inner,
		Params: func(context.Context, *core.View) (core.Parameters, error) {
			return core.NewParameters(core.Parameter{Name: "round", Type: core.TypeInt, Value: w.rows(rounds), Identifying: true})
		},
	})
	require.NoError(w.T, err)
	return &model.StepElement{Step: s}
}
