package chunk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type publisher struct {
	items int
	calls []string
}

func (p *publisher) note(format string, args ...any) {
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

func (p *publisher) Write(_ context.Context, items []int) error {
	p.items += len(items)
	p.note("write %d", len(items))
	return nil
}
func (p *publisher) Prepare(context.Context) error { p.note("prepare"); return nil }
func (p *publisher) Position() (item.Position, error) {
	p.note("position %d", p.items)
	return json.Marshal(p.items)
}
func (p *publisher) Release(context.Context) error { p.note("release"); return nil }
func (p *publisher) Finish(context.Context) error  { p.note("finish"); return nil }

func publishing(e *testengine.Engine, r item.ItemReader[int], p *publisher) *model.Job {
	return testengine.Job("publish", testengine.Chunk(e, "publish", 2, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
		return r, processorFunc(same), p
	}))
}

// Rule C15b.
func TestAWriterIsPreparedForEveryPartAndPublishesOnlyWhatIsStored(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "prepare, position 0, release, finish",
		1: "write 1, prepare, position 1, release, prepare, position 1, release, finish",
		3: "write 2, prepare, position 2, release, write 1, prepare, position 3, release, prepare, position 3, release, finish",
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e, p := testengine.New(t, url), &publisher{}
				exec := e.Run(publishing(e, &numbers{n: n}, p))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, want, strings.Join(p.calls, ", "))
				step := e.Step(exec, "publish")
				require.Equal(t, int64((n+1)/2), step.Counters.Commit, "it is not counted as a chunk")
				require.Contains(t, string(step.Position), fmt.Sprintf(`"writers":[%d]`, n))
			})
		})
	}
}

// overtaken is a reader that loses the step to another process during its last Read.
type overtaken struct {
	numbers
	over func()
}

func (r *overtaken) Read(ctx context.Context) (int, error) {
	n, err := r.numbers.Read(ctx)
	if errors.Is(err, io.EOF) && r.over != nil {
		r.over()
		r.over = nil
	}
	return n, err
}

func TestAnAttemptThatWasTakenOverBehindItsLastChunkPublishesNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 2} { // in both the last chunk is empty, and makes no commit of its own
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e, p := testengine.New(t, url), &publisher{}
				r := &overtaken{numbers: numbers{n: n}, over: func() {
					e.Exec("update surfin_step_execution set epoch = epoch + 1")
				}}
				_, err := e.Launcher.Run(context.Background(), publishing(e, r, p), core.Parameters{}, nil)
				require.ErrorIs(t, err, core.ErrLostOwner)
				require.NotContains(t, p.calls, "finish")
			})
		})
	}
}
