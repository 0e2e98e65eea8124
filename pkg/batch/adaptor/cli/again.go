package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// againName is the identifying parameter that --again adds. A declared one
// cannot have this name, for the dot.
const againName = "run.again"

// nextInstance returns the parameters of the instance that --again means: the
// newest of those with these parameters if it can go on, else one more.
//
// Instances are numbered without gaps, so the newest is found by doubling and
// halving: the number of queries grows with the logarithm of the repetitions. Of
// two processes that find the same number one is refused, as always (rule L1).
func nextInstance(ctx context.Context, history core.Explorer, j *core.Job, params core.Parameters) (core.Parameters, error) {
	var last *core.JobExecution
	exists := func(n int64) (bool, error) {
		numbered, err := withAgain(params, n)
		if err != nil {
			return false, err
		}
		exec, err := history.LastExecution(ctx, j.Name, numbered.Key())
		if errors.Is(err, core.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("find the last instance: %w", err)
		}
		last = exec
		return true, nil
	}
	newest, err := newestNumber(exists)
	if err != nil {
		return core.Parameters{}, err
	}
	if newest < 0 {
		return params, nil // there is none yet
	}
	if canGoOn(j, last.Status) {
		return withAgain(params, newest)
	}
	return withAgain(params, newest+1)
}

// newestNumber returns the greatest n that exists, -1 if 0 does not. The last
// positive answer of exists is the one about it.
func newestNumber(exists func(n int64) (bool, error)) (int64, error) {
	low, high := int64(-1), int64(0)
	for {
		ok, err := exists(high)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low, high = high, 2*high+1
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		ok, err := exists(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// canGoOn reports whether another attempt of the instance is to be made (or
// refused by the repository, where it runs or its outcome is unknown).
func canGoOn(j *core.Job, s core.Status) bool {
	switch s {
	case core.StatusCompleted, core.StatusAbandoned:
		return false
	case core.StatusFailed, core.StatusStopped:
		return j.Restartable
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping, core.StatusUnknown:
	}
	return true
}

// withAgain adds the number of the repetition; the 0th has none.
func withAgain(params core.Parameters, n int64) (core.Parameters, error) {
	if n == 0 {
		return params, nil
	}
	number := core.Parameter{Name: againName, Type: core.TypeInt, Value: n, Identifying: true}
	return core.NewParameters(append(params.All(), number)...)
}

// declaredWords writes the parameters of a launch as they are given, without
// those that have their default anyway and the number of a repetition.
func declaredWords(j *core.Job, params core.Parameters) []string {
	var words []string
	for _, spec := range j.Parameters {
		if p, ok := params.Get(spec.Name); ok && p.Value != spec.Default {
			words = append(words, canonicalWord(p))
		}
	}
	return words
}

// otherParameter suggests parameters that make another instance: the first
// identifying one that can be moved by one step.
func otherParameter(j *core.Job, params core.Parameters) ([]string, bool) {
	for _, spec := range j.Parameters {
		p, ok := params.Get(spec.Name)
		if !ok || !spec.Identifying {
			continue
		}
		next, ok := nextValue(spec, p.Value)
		if !ok {
			continue
		}
		var list []core.Parameter
		for _, other := range params.All() {
			if other.Name == spec.Name {
				other.Value = next
			}
			list = append(list, other)
		}
		changed, err := core.NewParameters(list...)
		if err != nil {
			return nil, false
		}
		return declaredWords(j, changed), true
	}
	return nil, false
}

// nextValue is the value after this one that the declaration allows.
func nextValue(spec core.ParameterSpec, value any) (any, bool) {
	var next any
	switch v := value.(type) {
	case int64:
		next = v + 1
	case core.Date:
		next = v + 1
	case time.Time:
		next = v.Add(24 * time.Hour)
	default:
		for i, text := range spec.Enum {
			if text == specText(spec, value) && len(spec.Enum) > 1 {
				return spec.Enum[(i+1)%len(spec.Enum)], true
			}
		}
		return nil, false
	}
	return next, job.CheckParameter(spec, next) == nil
}

// canonicalWord is name=value, not quoted.
func canonicalWord(p core.Parameter) string {
	text, err := p.Canonical()
	if err != nil {
		text = fmt.Sprint(p.Value) // cannot be: NewParameters has checked it
	}
	return p.Name + "=" + text
}

func idText(id core.JobExecutionID) string { return strconv.FormatInt(int64(id), 10) }
