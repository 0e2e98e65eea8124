package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The total is unknown: a spinner with counters.
type bars struct {
	progress *mpb.Progress
	now      func() time.Time
	mu       sync.Mutex
	steps    map[core.StepExecutionID]*stepBar
}

type stepBar struct {
	bar       *mpb.Bar
	counters  core.Counters
	perSecond float64
}

func newBars(progress *mpb.Progress, now func() time.Time) *bars {
	if progress == nil {
		return nil
	}
	return &bars{progress: progress, now: now, steps: map[core.StepExecutionID]*stepBar{}}
}

func (b *bars) add(id core.StepExecutionID, name string, started time.Time) {
	s := &stepBar{}
	line := func(decor.Statistics) string {
		b.mu.Lock()
		c, perSecond := s.counters, s.perSecond
		b.mu.Unlock()
		return progressText(name, c, perSecond, b.now().Sub(started))
	}
	bar, err := b.progress.Add(0, mpb.SpinnerStyle().PositionLeft().Build(),
		mpb.BarWidth(2), mpb.BarFillerTrim(), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.Any(line)))
	if err != nil {
		return // the screen is closed: nothing is left to draw on
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.bar = bar
	b.steps[id] = s
}

func (b *bars) update(id core.StepExecutionID, c core.Counters, perSecond float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.steps[id]; ok {
		s.counters, s.perSecond = c, perSecond
	}
}

func (b *bars) remove(id core.StepExecutionID) {
	b.mu.Lock()
	s, ok := b.steps[id]
	delete(b.steps, id)
	b.mu.Unlock()
	if ok {
		s.bar.Abort(true)
	}
}

func progressText(name string, c core.Counters, perSecond float64, took time.Duration) string {
	text := name
	if c.Rows() > 0 {
		text += fmt.Sprintf("  %s read · %s written", humanize.Count(c.Read), humanize.Count(c.Write))
		if c.Filter > 0 {
			text += " · " + humanize.Count(c.Filter) + " filtered"
		}
		if c.Skips() > 0 {
			text += " · " + humanize.Count(c.Skips()) + " skipped"
		}
		text += " · " + humanize.Count(int64(perSecond)) + " rows/s"
	}
	return fmt.Sprintf("%s · %d:%02d", text, int(took.Minutes()), int(took.Seconds())%60)
}
