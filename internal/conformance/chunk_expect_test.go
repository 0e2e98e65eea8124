package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type comparison struct {
	*chunkRun
	problems []string
}

func (r *chunkRun) compare(prefix string, e *expectation, o *outcome) {
	r.t.Helper()
	problems := r.problems(e, o)
	for _, p := range problems {
		assert.Fail(r.t, prefix+p)
	}
	if len(problems) > 0 {
		r.t.Logf("%serror: %v\ncounters: %+v\nread %v, %d calls from item %d on\nprocessed %v\nwrites %v, touched %v\nwritten %v\nskipped %v\ncallbacks %v %v",
			prefix, o.failure, o.step.Counters, o.readItems, o.readCalls, o.resumeAt, o.processCalls, o.writeCalls, o.touched, o.written, o.skipped, o.record.calls, o.trail)
	}
}

func (r *chunkRun) problems(e *expectation, o *outcome) []string {
	c := &comparison{chunkRun: r}
	c.status(e, o)
	c.counters(e, o.step.Counters)
	c.items(e, o)
	c.calls(e, o)
	c.always(o)
	return c.problems
}

func (c *comparison) status(e *expectation, o *outcome) {
	c.text("status", e.Status, o.job.Status)
	c.text("status (of the step)", e.Status, o.step.Status)
	c.text("exit_code", e.ExitCode, o.job.ExitCode)
	c.text("exit_code (of the step)", e.ExitCode, o.step.ExitCode)
	if e.Error != nil {
		is := symbolOf()[*e.Error]
		c.that(is(c.chunkRun, o.failure), "error", "expected %s, got %v", *e.Error, o.failure)
	}
	if e.ClassifiedSkippable != nil {
		c.text("classified_skippable", e.ClassifiedSkippable, c.classes.skippable(newError(c.scenario.Faults[0], occasion{})))
	}
}

func (c *comparison) counters(e *expectation, got core.Counters) {
	c.text("read", e.Read, got.Read)
	c.text("write", e.Write, got.Write)
	c.text("filter", e.Filter, got.Filter)
	c.text("read_skip", e.ReadSkip, got.ReadSkip)
	c.text("process_skip", e.ProcessSkip, got.ProcessSkip)
	c.text("write_skip", e.WriteSkip, got.WriteSkip)
	c.text("skips", e.Skips, got.Skips())
	c.text("commits", e.Commits, got.Commit)
	c.text("rollbacks", e.Rollbacks, got.Rollback)
	if e.CommitsMin != nil {
		c.that(got.Commit >= *e.CommitsMin, "commits_min", "expected at least %d, got %d", *e.CommitsMin, got.Commit)
	}
}

func (c *comparison) items(e *expectation, o *outcome) {
	c.list("written", e.Written, o.written)
	c.text("written_count", e.WrittenCount, len(o.written))
	c.reads(e, o)
	c.list("process_calls", e.ProcessCalls, o.processCalls)
	c.text("process_call_count", e.ProcessCallCount, len(o.processCalls))
	if e.WriteCalls != nil {
		want := c.batches(*e.WriteCalls)
		c.list("write_calls", &want, c.batches(o.writeCalls))
	}
	c.text("write_call_count", e.WriteCallCount, len(o.writeCalls))
	c.text("write_item_count", e.WriteItemCount, len(slices.Concat(o.writeCalls...)))
	c.list("write_touch", e.WriteTouch, o.touched)
	c.list("skipped_items", e.SkippedItems, o.skipped)
	c.text("resume_at", e.ResumeAt, o.resumeAt)
}

// reads compares the items read. A step that reads ahead, and then fails, may have read more.
func (c *comparison) reads(e *expectation, o *outcome) {
	items, calls := o.readItems, o.readCalls
	if c.ahead && o.step.Status != core.StatusCompleted {
		if e.ReadItems != nil {
			items = items[:min(len(items), len(*e.ReadItems))]
		}
		var want int
		if e.ReadCalls != nil {
			if _, err := fmt.Sscan(*e.ReadCalls, &want); err == nil && calls > want {
				calls = want
			}
		}
	}
	c.list("read_items", e.ReadItems, items)
	c.text("read_calls", e.ReadCalls, calls)
}

func (c *comparison) calls(e *expectation, o *outcome) {
	for _, name := range sortedKeys(e.ListenerCalls) {
		want := e.ListenerCalls[name]
		if want.list != nil {
			c.list("listener_calls "+name, want.list, o.record.items[name])
			continue
		}
		c.text("listener_calls "+name, &want.count, o.record.calls[name])
	}
	for _, name := range e.ListenerCalled {
		c.that(o.record.calls[name] > 0, "listener_called", "%s was not called", name)
	}
	if e.ListenerTrail != nil {
		c.list("listener_trail", e.ListenerTrail, only(o.trail, *e.ListenerTrail))
	}
	if e.StreamCalls == nil || !c.positioned {
		return
	}
	seen := only(o.stream, e.StreamCalls.names())
	c.list("stream_calls", e.StreamCalls.trail, seen)
	for _, name := range sortedKeys(e.StreamCalls.counts) {
		want := e.StreamCalls.counts[name]
		c.text("stream_calls "+name, &want, len(only(seen, []string{name})))
	}
}

// always holds in every scenario: the counters equal the committed work, and if a step completed every item
// has its verdict (rule C11).
func (c *comparison) always(o *outcome) {
	n := o.step.Counters
	c.that(int64(len(o.written)) == n.Write, "rows", "%d are committed, %d are counted", len(o.written), n.Write)
	c.that(int64(len(o.skipped)) <= n.Skips(), "skipped items", "%d are stored, %d are counted", len(o.skipped), n.Skips())
	if o.step.Status != core.StatusCompleted {
		return
	}
	c.that(int64(len(o.skipped)) == n.Skips(), "skipped items", "%d are stored, %d are counted", len(o.skipped), n.Skips())
	c.that(n.Read == n.Filter+n.Write+n.ProcessSkip+n.WriteSkip, "verdicts", "items without a verdict, or with two: %+v", n)
	c.that(o.failure == nil, "failure", "a step that completed failed with %v", o.failure)
}

func (c *comparison) text(key string, want *string, got any) {
	if want != nil {
		c.that(*want == fmt.Sprint(got), key, "expected %s, got %v", *want, got)
	}
}

func (c *comparison) list(key string, want *[]string, got []string) {
	if want == nil {
		return
	}
	expected := *want
	if c.scenario.Mode == concurrent {
		expected, got = slices.Sorted(slices.Values(expected)), slices.Sorted(slices.Values(got))
	}
	c.that(slices.Equal(expected, got), key, "expected %v, got %v", expected, got)
}

func (c *comparison) batches(calls [][]string) []string {
	var list []string
	for _, batch := range calls {
		if c.scenario.Mode == concurrent {
			batch = slices.Sorted(slices.Values(batch))
		}
		list = append(list, "["+strings.Join(batch, ",")+"]")
	}
	return list
}

func (c *comparison) that(is bool, key, format string, args ...any) {
	if !is {
		c.problems = append(c.problems, key+": "+fmt.Sprintf(format, args...))
	}
}

func only(calls, names []string) []string {
	var list []string
	for _, name := range calls {
		if slices.Contains(names, name) {
			list = append(list, name)
		}
	}
	return list
}

func symbolOf() map[string]func(r *chunkRun, err error) bool {
	return map[string]func(r *chunkRun, err error) bool{
		"none":                func(_ *chunkRun, err error) bool { return err == nil },
		"skip_limit_exceeded": func(_ *chunkRun, err error) bool { return is[*chunk.SkipLimitError](err) },
		"retry_exhausted":     func(_ *chunkRun, err error) bool { return is[*chunk.RetryExhaustedError](err) },
		"listener_failed":     func(_ *chunkRun, err error) bool { return is[*chunk.ListenerError](err) },
		"non_skippable":       nonSkippable,
		"retry_exhausted_not_skippable": func(r *chunkRun, err error) bool {
			cause, found := injectedIn(err)
			return found && cause.where == phaseWrite && nonSkippable(r, err) &&
				is[*chunk.RetryExhaustedError](err) == (r.scenario.RetryLimit > 0 && r.classes.retryable(err))
		},
	}
}

func symbols() []string { return sortedKeys(symbolOf()) }

// nonSkippable: an item's own failure ended the step, and not because of a limit.
func nonSkippable(r *chunkRun, err error) bool {
	cause, _ := injectedIn(err)
	return cause != nil && !is[*chunk.SkipLimitError](err) && !is[*chunk.ListenerError](err) && !r.classes.skippable(err)
}

func is[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}
