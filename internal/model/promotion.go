package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Promotion copies keys of a step's context to the job's (rule D4).
type Promotion struct {
	// Keys maps keys of the step to keys of the job.
	Keys map[string]string
	// Statuses are patterns of the exit codes at which it happens; empty means COMPLETED.
	Statuses []string
	// Strict makes a key that the step lacks an ErrMissingKey; otherwise it is left out, and the job's
	// value under it stays.
	Strict bool
}

// Apply copies the keys if the exit code matches. The error names all missing keys.
func (p *Promotion) Apply(exit string, step, job *core.ExecutionContext) error {
	if !p.concerns(exit) {
		return nil
	}
	missing := p.Missing(exit, step)
	for _, key := range slices.Sorted(maps.Keys(p.Keys)) {
		value, ok := step.Get(key)
		if !ok {
			continue
		}
		if err := job.Put(p.Keys[key], value); err != nil {
			return fmt.Errorf("promote %s: %w", key, err)
		}
	}
	if p.Strict && len(missing) > 0 {
		return fmt.Errorf("promote %s: %w", strings.Join(missing, ", "), ports.ErrMissingKey)
	}
	return nil
}

// Missing returns the keys, sorted, that a step with this exit code should promote but lacks; none if
// it promotes nothing.
func (p *Promotion) Missing(exit string, step *core.ExecutionContext) (missing []string) {
	if !p.concerns(exit) {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(p.Keys)) {
		if _, ok := step.Get(key); !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

func (p *Promotion) concerns(exit string) bool {
	statuses := p.Statuses
	if len(statuses) == 0 {
		statuses = []string{core.ExitCompleted}
	}
	return slices.ContainsFunc(statuses, func(pattern string) bool { return MatchPattern(pattern, exit) })
}
