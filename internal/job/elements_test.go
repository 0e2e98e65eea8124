package job_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func promotedAlike(calm, stormy *weather) error {
	var keys [2][]string
	for i, w := range []*weather{calm, stormy} {
		last, err := w.Repository.Executions(context.Background(), ports.ExecutionFilter{JobName: w.name, Limit: 1})
		if err != nil {
			return err
		}
		keys[i] = slices.DeleteFunc(last[0].Context.Keys(), func(key string) bool {
			return strings.HasPrefix(key, "surfin.") || w.loose[key]
		})
	}
	if !slices.Equal(keys[0], keys[1]) {
		return fmt.Errorf("promoted are %v, and not %v", keys[1], keys[0])
	}
	return nil
}

func (w *weather) nothingRuns(since core.JobExecutionID) {
	for table, key := range map[string]string{"job_execution": "id", "step_execution": "job_execution_id"} {
		require.Zero(w.T, w.Ints(fmt.Sprintf(`SELECT count(*) FROM surfin_%s
			WHERE %s >= %d AND status IN ('STARTING', 'STARTED', 'STOPPING')`, table, key, since))[0], table)
	}
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) isCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

func (m *mortal) noteCut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = true
}

// holding is a step that sometimes does its work and stops the job; the restart continues after it if
// something follows, else runs it again.
func (w *weather) holding(name string) *model.StepElement {
	work := w.working(name)
	return w.Tasklet(name, tx.Attr{}, func(ctx context.Context, c *core.StepContribution) error {
		err := work(ctx, c)
		if err == nil && w.lightning(4) {
			c.ExitCode = "HOLD"
		}
		return err
	})
}

func (w *weather) hold(at model.Element, next string) {
	e, ok := at.(*model.StepElement)
	if !ok || e.Step.Name()[0] != 'h' {
		return
	}
	e.Next = append(e.Next, model.Transition{Pattern: "HOLD", Target: model.Target{Kind: model.TargetStop, Restart: next}})
	w.loose[e.Step.Name()] = next == ""
}

func (w *weather) recovering(name, by string) (*model.StepElement, []model.Element) {
	w.loose[name], w.loose[by] = true, true
	e := w.step(name)
	e.Next = []model.Transition{{Pattern: core.ExitFailed, Target: model.Target{Kind: model.TargetElement, Name: by}}}
	return e, []model.Element{w.step(by)}
}

func (w *weather) repeated(name string) *model.StepElement {
	w.loose[name] = true
	e := w.step(name)
	e.AllowStartIfComplete = true
	return e
}
