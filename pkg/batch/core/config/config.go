// Package config holds configuration structs of job files and Go code.
//
// It imports the standard library only.
package config

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff waits Initial, then Multiplier times longer up to Max, ±Jitter. Elapsed bounds all attempts; 0 means
// no bound.
type Backoff struct {
	Initial    time.Duration `key:"initial" yaml:"initial" default:"100ms" doc:"The first wait."`
	Multiplier float64       `key:"multiplier" yaml:"multiplier" default:"2" doc:"The factor by which each wait grows; 1 means a fixed wait."`
	Max        time.Duration `key:"max" yaml:"max" default:"10s" doc:"The longest wait."`
	Jitter     float64       `key:"jitter" yaml:"jitter" default:"0.2" doc:"The random part of a wait, 0 to 1."`
	Elapsed    time.Duration `key:"elapsed" yaml:"elapsed" doc:"The longest time for all attempts together [none]."`
}

// Validate reports values that cannot be used.
func (b Backoff) Validate() error {
	var errs []error
	if b.Initial < 0 || b.Max < 0 || b.Elapsed < 0 {
		errs = append(errs, errors.New("a wait must not be negative"))
	}
	if b.Multiplier != 0 && b.Multiplier < 1 {
		errs = append(errs, fmt.Errorf("multiplier %v is less than 1", b.Multiplier))
	}
	if b.Jitter < 0 || b.Jitter > 1 {
		errs = append(errs, fmt.Errorf("jitter %v is not between 0 and 1", b.Jitter))
	}
	return errors.Join(errs...)
}

// Wait is before re-try n (1-based).
func (b Backoff) Wait(n int) time.Duration {
	d := float64(b.Initial)
	for i := 1; i < n && (b.Max <= 0 || d < float64(b.Max)); i++ {
		d *= max(b.Multiplier, 1)
	}
	if b.Max > 0 {
		d = min(d, float64(b.Max))
	}
	if b.Jitter > 0 {
		d *= 1 + b.Jitter*(2*rand.Float64()-1) //nolint:gosec // spreads load, keeps no secret
	}
	return time.Duration(d)
}

// ItemRetryConfig says which errors are retried how often (rules C2, C6). Errors and Except name matchers; the
// most specific decides.
type ItemRetryConfig struct {
	Limit   int      `key:"limit" yaml:"limit" main:"true" default:"0" doc:"Retries after the first attempt: of each item for reader and processor, of the chunk for the writer, of a tasklet."`
	Errors  []string `key:"errors" yaml:"errors" kind:"matcher" item:"a class" default:"[transient]" doc:"Classes of errors to retry."`
	Except  []string `key:"except" yaml:"except" kind:"matcher" item:"a class" doc:"Classes that are not retried, even if a wider class is."`
	Backoff Backoff  `key:"backoff" yaml:"backoff" doc:"How long to wait before the next attempt."`
}

// ItemSkipConfig says which errors cost an item, and how many (rule C3): one limit over read, process and
// write.
type ItemSkipConfig struct {
	Limit  int      `key:"limit" yaml:"limit" main:"true" default:"0" doc:"The highest number of skipped items; one more fails the step."`
	Errors []string `key:"errors" yaml:"errors" kind:"matcher" item:"a class" default:"[invalid_item, constraint]" doc:"Classes of errors whose items are skipped."`
	Except []string `key:"except" yaml:"except" kind:"matcher" item:"a class" doc:"Classes that are not skipped, even if a wider class is."`
}
