package step

import (
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// report fills the record of the whole step from the results of its partitions, and returns how it
// ended. passed are partitions that earlier attempts completed.
func report(record *core.StepExecution, parts []model.PlannedPartition, results []model.PartitionResult, passed []core.StepExecution) error {
	all := make([]model.PartitionResult, 0, len(passed)+len(results))
	for _, p := range passed {
		all = append(all, model.PartitionResult{Status: p.Status, ExitCode: p.ExitCode})
	}
	var sum, inHand core.Counters
	for i, r := range results {
		if r.Lost != nil {
			return fmt.Errorf("partition %s: %w", parts[i].Name, r.Lost)
		}
		if r.Status == "" || !r.Status.IsOver() {
			r.Status, r.ExitCode, r.Message = core.StatusFailed, core.ExitFailed, "it did not return"
		}
		results[i] = r
		sum, inHand = sum.Add(r.Counters), inHand.Add(r.InHand)
		all = append(all, r)
	}
	record.Counters, record.InHand = sum, inHand
	status, exit := aggregate(all)
	record.ExitCode = exit
	switch status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return core.ErrStopped
	case core.StatusUnknown, core.StatusAbandoned:
		return fmt.Errorf("%s: %w", failures(parts, results, status), unknownOutcome(settle(all)))
	case core.StatusFailed, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return errors.New(failures(parts, results, status))
}

// settle reports whether checkpoints resolve all partitions that are UNKNOWN.
func settle(all []model.PartitionResult) bool {
	return !slices.ContainsFunc(all, func(r model.PartitionResult) bool {
		return r.Status == core.StatusUnknown && !r.Settles || r.Status == core.StatusAbandoned
	})
}

// aggregate returns the most severe status, and the exit code of the partitions that have it; the
// others do not count. An exit code that is not the author's is left to the step executor.
func aggregate(all []model.PartitionResult) (core.Status, string) {
	status, exit := core.StatusCompleted, ""
	for _, r := range all {
		status = model.MaxStatus(status, r.Status)
	}
	for _, r := range all {
		if r.Status != status {
			continue
		}
		if exit == "" {
			exit = r.ExitCode
		} else {
			exit = model.AndExit(exit, r.ExitCode)
		}
	}
	if exit == exitOf(status) {
		exit = ""
	}
	return status, exit
}

// failures names the partitions that have the status, a few of many.
func failures(parts []model.PlannedPartition, results []model.PartitionResult, status core.Status) string {
	var texts []string
	for i, r := range results {
		if r.Status == status {
			texts = append(texts, fmt.Sprintf("%s: %s", parts[i].Name, r.Message))
		}
	}
	word := "failed"
	if status != core.StatusFailed {
		word = "ended " + string(status)
	}
	return fmt.Sprintf("%d of %d partitions %s: %s", len(texts), len(parts), word, few(texts, "; "))
}
