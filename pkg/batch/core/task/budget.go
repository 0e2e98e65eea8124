package task

import (
	"errors"
	"fmt"
	"time"
)

// Budget bounds a group's attempts and time; zero fields are defaults.
type Budget struct {
	// MaxAttempts per task; 0 means 5.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// MaxTotalAttempts of the group; 0 means no bound.
	MaxTotalAttempts int `json:"max_total_attempts,omitempty"`
	// Deadline counts from submission on the database's clock; 0 means none.
	Deadline time.Duration `json:"deadline,omitempty"`
	// MaxNoProgress bounds consecutive attempts without a success; 0 means 50.
	MaxNoProgress int `json:"max_no_progress,omitempty"`
}

// The defaults of a budget.
const (
	defaultMaxAttempts   = 5
	defaultMaxNoProgress = 50
)

// Filled fills in defaults.
func (b Budget) Filled() Budget {
	if b.MaxAttempts == 0 {
		b.MaxAttempts = defaultMaxAttempts
	}
	if b.MaxNoProgress == 0 {
		b.MaxNoProgress = defaultMaxNoProgress
	}
	return b
}

// Check reports all errors.
func (b Budget) Check() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"max_attempts", int64(b.MaxAttempts)}, {"max_total_attempts", int64(b.MaxTotalAttempts)},
		{"deadline", int64(b.Deadline)}, {"max_no_progress", int64(b.MaxNoProgress)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("budget: %s is negative", f.name))
		}
	}
	return errors.Join(errs...)
}

// Spent is the used budget, including this attempt.
type Spent struct {
	Attempts      int  `json:"attempts"`
	TotalAttempts int  `json:"total_attempts"`
	NoProgress    int  `json:"no_progress"`
	Overdue       bool `json:"overdue"`
}

// Exhausted returns why no attempt is left, or "".
func (b Budget) Exhausted(s Spent) string {
	b = b.Filled()
	switch {
	case s.Overdue:
		return fmt.Sprintf("the deadline of %v has passed", b.Deadline)
	case s.Attempts >= b.MaxAttempts:
		return fmt.Sprintf("it was tried %d times (max_attempts %d)", s.Attempts, b.MaxAttempts)
	case b.MaxTotalAttempts > 0 && s.TotalAttempts >= b.MaxTotalAttempts:
		return fmt.Sprintf("its group was tried %d times (max_total_attempts %d)", s.TotalAttempts, b.MaxTotalAttempts)
	case s.NoProgress >= b.MaxNoProgress:
		return fmt.Sprintf("%d attempts of its group in a row made no progress (max_no_progress %d)", s.NoProgress, b.MaxNoProgress)
	}
	return ""
}
