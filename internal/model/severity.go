package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// MaxStatus returns the combined status of work with both: the later one in COMPLETED, STARTING,
// STARTED, PARKED, STOPPING, STOPPED, FAILED, ABANDONED, UNKNOWN.
func MaxStatus(a, b core.Status) core.Status {
	order := []core.Status{
		core.StatusCompleted, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping, core.StatusStopped, core.StatusFailed, core.StatusAbandoned, core.StatusUnknown,
	}
	if slices.Index(order, a) >= slices.Index(order, b) {
		return a
	}
	return b
}

// CompareSeverity orders outcomes of flows from the mildest to the most severe: by the prefix of the
// exit code (COMPLETED, STOPPED, FAILED, anything else), then by text (rule F2b).
func CompareSeverity(a, b string) int {
	return cmp.Or(
		cmp.Compare(prefixRank(a, core.ExitCompleted, core.ExitStopped, core.ExitFailed), prefixRank(b, core.ExitCompleted, core.ExitStopped, core.ExitFailed)),
		strings.Compare(a, b),
	)
}

// exitExecuting is the exit code of work in progress, as other frameworks name it.
const exitExecuting = "EXECUTING"

// AndExit returns the exit code of work that consists of both parts: the more severe one, by the prefix
// in EXECUTING, COMPLETED, NOOP, STOPPED, FAILED, UNKNOWN, anything else; then the later one by text.
func AndExit(a, b string) string {
	ranks := []string{exitExecuting, core.ExitCompleted, core.ExitNoop, core.ExitStopped, core.ExitFailed, core.ExitUnknown}
	if cmp.Or(cmp.Compare(prefixRank(a, ranks...), prefixRank(b, ranks...)), strings.Compare(a, b)) > 0 {
		return a
	}
	return b
}

func prefixRank(code string, prefixes ...string) int {
	for i, p := range prefixes {
		if strings.HasPrefix(code, p) {
			return i
		}
	}
	return len(prefixes)
}

// Worse returns the outcome that decides for two parallel flows.
func Worse(a, b core.Outcome) core.Outcome {
	if a.Status == b.Status && a.Settles != b.Settles { // no record shows the outcome of the other one
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
