package testahead

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type result struct {
	Status           core.Status // of the step
	Exit, Error      string
	Position         string
	Context          string
	Counters, InHand core.Counters
	Skips            []skip   // stored by this launch, in their order
	Rows             []row    // of the table, by all launches, in their order
	Files            [][]int  // of each writer, by all launches
	Contents         []string // of each writer that a component makes
	Trace            []string // the calls of components, listeners, policy and database
	Unordered        []string // the callbacks of processing goroutines, sorted; nil if they are not determined
	Events           []string
}

type row struct{ Writer, Place int }

type skip struct {
	Phase        core.Phase
	Place        int // that its mark leads to
	Mark         string
	Meta         item.Meta
	Item, Raw    string
	Class, Error string
}

type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) Observe(_ context.Context, event core.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch event := event.(type) {
	case core.ChunkCommitted:
		e.list = append(e.list, fmt.Sprintf("committed %v", event.Counters))
	case core.ChunkRolledBack:
		e.list = append(e.list, fmt.Sprintf("rolled back: %v", event.Err))
	case core.ListenerFailed:
		e.list = append(e.list, fmt.Sprintf("listener failed: %v", event.Err))
	case core.CloseFailed:
		e.list = append(e.list, fmt.Sprintf("close failed: %v", event.Err))
	}
}

func (b *bench) check(t *rapid.T, s *scenario) {
	off := b.run(t, s, chunk.ReadAheadOff)
	on := b.run(t, s, chunk.ReadAheadOn)
	if s.Racing {
		return
	}
	for n := range min(len(off), len(on)) {
		require.Equal(t, off[n], on[n], "launch %d without read-ahead, and with it\n%v", n+1, s)
	}
	require.Len(t, on, len(off), "%v", s)
}

// run launches a job until it is complete. If the database loses the result of a COMMIT, an operator has to
// decide (rule C10).
func (b *bench) run(t *rapid.T, s *scenario, ahead chunk.ReadAhead) []result {
	var list []result
	to := b.newTarget(s)
	for n := range s.Launches {
		r := b.launch(t, s, n, to, ahead)
		list = append(list, r)
		s.checkSkips(t, r.Skips)
		switch r.Status {
		case core.StatusCompleted:
			s.complete(t, list, ahead)
			return list
		case core.StatusUnknown:
			return list
		default:
		}
	}
	require.FailNow(t, "the last launch did not complete the job", "read ahead %q: %s\n%v", ahead, list[len(list)-1].Error, s)
	return nil
}

func (s *scenario) checkSkips(t *rapid.T, list []skip) {
	for _, k := range list {
		if k.Phase != core.PhaseRead {
			var it thing
			require.NoError(t, json.Unmarshal([]byte(k.Item), &it))
			require.Equal(t, k.Place, it.Place, "the item of %+v\n%v", k, s)
		}
		if k.Phase != core.PhaseRead || s.Reading == consumes {
			require.Equal(t, int64(k.Place+1), k.Meta.Line, "the line of %+v\n%v", k, s)
		}
	}
}

// complete checks the end of a complete job: each writer has each item once, unless it was filtered, or
// skipped once, and the counters agree.
func (s *scenario) complete(t *rapid.T, list []result, ahead chunk.ReadAhead) {
	end := list[len(list)-1]
	skipped := map[int]int{}
	var total core.Counters
	for _, r := range list {
		total = total.Add(r.Counters.Sub(r.InHand))
		for _, k := range r.Skips {
			skipped[k.Place]++
		}
	}
	require.True(t, total.Balanced(), "read ahead %q: %+v\n%v", ahead, total, s)
	require.Equal(t, int64(s.Items), total.Read+total.ReadSkip, "read ahead %q\n%v", ahead, s)
	for n := range s.Outputs {
		written := map[int]int{}
		for _, place := range end.Files[n] {
			written[place]++
		}
		for _, r := range end.Rows {
			if r.Writer == n {
				written[r.Place]++
			}
		}
		for place := range s.Items {
			verdicts := written[place] + skipped[place]
			if verdicts == 0 && s.filters(place) {
				verdicts++
			}
			require.Equal(t, 1, verdicts, "read ahead %q: verdicts of item %d at writer %d: %d times written, %d times skipped\n%v",
				ahead, place, n, written[place], skipped[place], s)
		}
	}
}
