package core

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Status is the state of a job or step execution (rule D3).
type Status string

// The statuses.
const (
	StatusStarting Status = "STARTING"
	StatusStarted  Status = "STARTED"
	// StatusParked waits for its partitions without an owner; any process may resume it.
	StatusParked    Status = "PARKED"
	StatusStopping  Status = "STOPPING"
	StatusStopped   Status = "STOPPED"
	StatusCompleted Status = "COMPLETED"
	StatusFailed    Status = "FAILED"
	StatusAbandoned Status = "ABANDONED"
	StatusUnknown   Status = "UNKNOWN"
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{
		StatusStarting, StatusStarted, StatusParked, StatusStopping, StatusStopped,
		StatusCompleted, StatusFailed, StatusAbandoned, StatusUnknown,
	}
}

// Exit codes of the framework; authors may use others.
const (
	ExitCompleted = "COMPLETED"
	ExitFailed    = "FAILED"
	ExitStopped   = "STOPPED"
	ExitNoop      = "NOOP"
	ExitUnknown   = "UNKNOWN"
	// ExitExpectFailed: the gate failed.
	ExitExpectFailed = "EXPECT_FAILED"
)

// maxExitCodeBytes (rule D3): it is part of an index.
const maxExitCodeBytes = 500

// CheckExitCode refuses one that is too long, not UTF-8, or has a NUL.
func CheckExitCode(code string) error {
	switch {
	case len(code) > maxExitCodeBytes:
		end := maxExitCodeBytes / 10
		for !utf8.RuneStart(code[end]) {
			end--
		}
		return fmt.Errorf("exit code %q...: it has %d bytes, more than the allowed %d", code[:end], len(code), maxExitCodeBytes)
	case !utf8.ValidString(code):
		return fmt.Errorf("exit code %q: it is not valid UTF-8", code)
	case strings.Contains(code, "\x00"):
		return fmt.Errorf("exit code %q: it contains a NUL", code)
	}
	return nil
}

// IsRunning reports whether a process owns it.
func (s Status) IsRunning() bool {
	return s == StatusStarting || s == StatusStarted || s == StatusStopping
}

// IsOver reports whether work has ended; PARKED work has not.
func (s Status) IsOver() bool { return !s.IsRunning() && s != StatusParked }
