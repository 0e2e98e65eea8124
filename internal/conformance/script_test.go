package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type texts []string

func (l *texts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*l = texts{node.Value}
		return nil
	}
	return node.Decode((*[]string)(l))
}

type act struct{ word, exit string }

const (
	actCompleted   = "COMPLETED"
	actFailed      = "FAILED"
	actStopped     = "STOPPED"
	actStopping    = "STOPPING"
	actUnknown     = "UNKNOWN"
	actPanic       = "PANIC"
	actInterrupted = "INTERRUPTED"
	// actStopRequested: a stop of the execution arrives while the step runs.
	actStopRequested = "STOP_REQUESTED"
	actError         = "ERROR"
	// actUntilStopped: the step works until it is asked to stop.
	actUntilStopped = "RUN_UNTIL_STOPPED"
	// actSlow: the step takes slowTime, unless it is asked to stop.
	actSlow = "SLOW"
)

// slowTime is how long a SLOW step works: long enough that the next action finds it at work.
const slowTime = 1500 * time.Millisecond

func words() []string {
	return []string{
		actCompleted, actFailed, actStopped, actStopping, actUnknown, actPanic, actInterrupted,
		actStopRequested, actError, actUntilStopped, actSlow,
	}
}

func parseAct(text string) (act, error) {
	word, exit, _ := strings.Cut(text, ":")
	if !slices.Contains(words(), word) {
		return act{}, fmt.Errorf("outcome %q is unknown (known: %v)", text, words())
	}
	return act{word, exit}, nil
}

// parseVerdict parses the answer of a decision: a verdict is any text, and a status in front of it is not
// part of it.
func parseVerdict(text string) act {
	if text == actError || text == actPanic {
		return act{word: text}
	}
	if a, err := parseAct(text); err == nil && a.exit != "" {
		return a
	}
	return act{actCompleted, text}
}

func (a act) isBlocking() bool { return a.word == actUntilStopped || a.word == actSlow }

// script lists the acts of a step or decision: one act per invocation over all launches of the scenario; the
// last one repeats.
type script struct {
	mu   sync.Mutex
	acts []act
	next int
}

func newScript(outcomes []string) (*script, error) {
	s := &script{}
	for _, text := range outcomes {
		a, err := parseAct(text)
		if err != nil {
			return nil, err
		}
		s.acts = append(s.acts, a)
	}
	if len(s.acts) == 0 {
		s.acts = []act{{word: actCompleted}}
	}
	return s, nil
}

func (s *script) waits() bool {
	return slices.ContainsFunc(s.acts, func(a act) bool { return a.isBlocking() || a.word == actStopRequested })
}

func (s *script) now() act {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acts[min(s.next, len(s.acts)-1)]
}

// take is the act of this invocation, the n-th from 0.
func (s *script) take() (a act, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.next
	s.next++
	return s.acts[min(n, len(s.acts)-1)], n
}

var errScripted = errors.New("the scenario says FAILED")

type stage struct {
	repository ports.Repository
	// blocked is called when a step begins to work until it is stopped; may be
	// nil.
	blocked func()
	// stops means that a stop of the execution arrives while the step runs (terminate_only): a step that
	// would complete ends with it, and any other outcome stays.
	stops bool
}

func (s stage) play(ctx context.Context, c *core.StepContribution, a act) error {
	c.ExitCode = a.exit
	if s.stops {
		if a.word == actCompleted {
			a.word = actStopRequested
		} else if err := s.requestStop(ctx, c); err != nil {
			return err
		}
	}
	switch a.word {
	case actFailed:
		return errScripted
	case actStopped, actStopping, actInterrupted:
		return fmt.Errorf("the scenario says %s: %w", a.word, core.ErrStopped)
	case actUnknown:
		return fmt.Errorf("the scenario says %s: %w", a.word, ports.ErrUnknownOutcome)
	case actPanic:
		panic("the scenario says PANIC")
	case actStopRequested:
		if err := s.requestStop(ctx, c); err != nil {
			return err
		}
		return s.work(ctx, c, nil)
	case actUntilStopped:
		return s.work(ctx, c, nil)
	case actSlow:
		timer := time.NewTimer(slowTime)
		defer timer.Stop()
		return s.work(ctx, c, timer.C)
	}
	return nil
}

func (s stage) requestStop(ctx context.Context, c *core.StepContribution) error {
	_, err := s.repository.RequestStop(ctx, c.Step.JobExecutionID, ports.By{Actor: "test"})
	return err
}

func (s stage) work(ctx context.Context, c *core.StepContribution, over <-chan time.Time) error {
	if s.blocked != nil {
		s.blocked()
	}
	select {
	case <-over:
		return nil
	case <-c.Stop:
		return core.ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
