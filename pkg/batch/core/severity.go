package core

import (
	"cmp"
	"slices"
	"strings"
)

// MaxStatus returns the status that decides when work with both is seen as one:
// of COMPLETED, STARTING, STARTED, PARKED, STOPPING, STOPPED, FAILED, ABANDONED, UNKNOWN
// the later one.
func MaxStatus(a, b Status) Status {
	order := []Status{
		StatusCompleted, StatusStarting, StatusStarted, StatusParked, StatusStopping, StatusStopped, StatusFailed, StatusAbandoned, StatusUnknown,
	}
	if slices.Index(order, a) >= slices.Index(order, b) {
		return a
	}
	return b
}

// CompareSeverity orders outcomes of flows from the mildest to the most severe:
// by what the exit code begins with (COMPLETED, STOPPED, FAILED, anything else),
// then by text (rule F2b).
func CompareSeverity(a, b string) int {
	return cmp.Or(
		cmp.Compare(prefixRank(a, ExitCompleted, ExitStopped, ExitFailed), prefixRank(b, ExitCompleted, ExitStopped, ExitFailed)),
		strings.Compare(a, b),
	)
}

// exitExecuting is the exit code of work in progress, in the words of others.
const exitExecuting = "EXECUTING"

// AndExit returns the exit code of work that consists of both parts: the more
// severe one, of what begins with EXECUTING, COMPLETED, NOOP, STOPPED, FAILED,
// UNKNOWN, anything else; then the later one by text.
func AndExit(a, b string) string {
	ranks := []string{exitExecuting, ExitCompleted, ExitNoop, ExitStopped, ExitFailed, ExitUnknown}
	if cmp.Or(cmp.Compare(prefixRank(a, ranks...), prefixRank(b, ranks...)), strings.Compare(a, b)) > 0 {
		return a
	}
	return b
}

// prefixRank is the place of the first of the prefixes that the code begins with.
func prefixRank(code string, prefixes ...string) int {
	for i, p := range prefixes {
		if strings.HasPrefix(code, p) {
			return i
		}
	}
	return len(prefixes)
}

// Worse returns the outcome that decides of two flows side by side.
func Worse(a, b Outcome) Outcome {
	if a.Status == b.Status && a.Settles != b.Settles { // nothing tells the outcome of the other one
		a.Settles, b.Settles = false, false
	}
	if max := MaxStatus(a.Status, b.Status); a.Status != b.Status {
		if max == a.Status {
			return a
		}
		return b
	}
	if CompareSeverity(a.ExitCode, b.ExitCode) >= 0 {
		return a
	}
	return b
}
