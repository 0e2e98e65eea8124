package compile

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// setRetrySkip fills in the retries and skips of the step. The error classes belong to the application that
// runs it.
func (c *compiler) setRetrySkip(s *tree.Step, to *chunk.Config) error {
	matchers := c.deps.Registry.Matchers()
	to.Isolate = chunk.Isolation(s.Chunk.Isolate)
	to.KeepOutputs = !s.Chunk.Reprocess
	to.ProcessInTransaction = s.Chunk.ProcessInTransaction
	to.Concurrency = *s.Chunk.Concurrency
	switch s.Chunk.ReadAhead {
	case "true":
		to.ReadAhead = chunk.ReadAheadOn
	case "false":
		to.ReadAhead = chunk.ReadAheadOff
	}
	to.Classify = matchers.Class
	to.Transient = func(phase core.Phase, err error) bool {
		if phase == core.PhaseWrite {
			return matchers.Is("transient", err)
		}
		return matchers.Is("deadlock", err) || matchers.Is("serialization", err) // others may be errors of a service that an item calls
	}
	var err error
	if to.Retry, err = c.retry(s); err != nil {
		return err
	}
	// With a limit of 0 the step fails with the error itself, not with a limit exceeded.
	if s.Skip != nil && s.Skip.Limit > 0 {
		rules, err := matchers.SkipRules(s.Skip.Errors, s.Skip.Except)
		if err != nil {
			return fmt.Errorf("skip: %w", err)
		}
		to.Skip = chunk.LimitSkip{Limit: int64(s.Skip.Limit), Skippable: rules.Match, Unasked: rules.Unasked}
	}
	return nil
}

func (c *compiler) retry(s *tree.Step) (core.Retry, error) {
	if s.Retry == nil {
		return core.Retry{}, nil
	}
	rules, err := c.deps.Registry.Matchers().RetryRules(s.Retry.Errors, s.Retry.Except)
	if err != nil {
		return core.Retry{}, fmt.Errorf("retry: %w", err)
	}
	return core.Retry{Limit: s.Retry.Limit, Retryable: rules.Match, Unasked: rules.Unasked, Backoff: s.Retry.Backoff}, nil
}
