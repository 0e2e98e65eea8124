package taskports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// MayDo reports whether a live worker may do work with a placement: its labels fit, and it
// takes parts, or has the type and the decider, as the work needs.
func (w *Worker) MayDo(p ports.Placed) bool {
	return w.State == WorkerActive && p.On.Fits(w.Name, w.Labels) && w.lacks(p) == ""
}

// lacks returns the requirement of the work that the worker does not meet, or "".
func (w *Worker) lacks(p ports.Placed) string {
	switch {
	case p.Kind != ports.PlacedTask && !w.Parts:
		return "runs partitions and continues executions"
	case p.Kind != ports.PlacedTask:
		return ""
	case !slices.Contains(w.Types, p.Type):
		return fmt.Sprintf("executes tasks of type %q", p.Type)
	case p.Decider != "" && !slices.Contains(w.Deciders, p.Decider):
		return fmt.Sprintf("has the decider %q", p.Decider)
	}
	return ""
}

// Free returns the number of free slots of the worker.
func (w *Worker) Free() int { return max(0, w.Capacity-w.Busy) }

// WaitsFor returns the reason why work with a placement is not executed yet (rule PL5); empty if a
// worker executes it, or it is over. leads means that a process leads.
func WaitsFor(p ports.Placed, workers []Worker, leads bool) string {
	if p.State == ports.PlaceAssigned {
		i := slices.IndexFunc(workers, func(w Worker) bool { return w.Name == p.Worker })
		if i >= 0 && workers[i].State == WorkerActive {
			return fmt.Sprintf("it is assigned to worker %s, which has not started it", p.Worker)
		}
		return fmt.Sprintf("it is assigned to worker %s, which is gone or stopping: it is assigned to another one %s later (surfin settings)", p.Worker, ReassignAfter)
	}
	if p.State != ports.PlacePending && p.State != ports.PlaceOrphaned {
		return ""
	}
	fit := slices.DeleteFunc(slices.Clone(workers), func(w Worker) bool { return !p.On.Fits(w.Name, w.Labels) })
	draining := slices.ContainsFunc(fit, func(w Worker) bool { return w.State == WorkerDraining })
	fit = slices.DeleteFunc(fit, func(w Worker) bool { return w.State != WorkerActive })
	whose := "with the labels " + p.On.String()
	if p.On.Worker != "" {
		whose = "of the name " + p.On.Worker
	}
	switch {
	case len(fit) == 0 && draining:
		return fmt.Sprintf("the live workers %s are stopping: it waits for another one", whose)
	case len(fit) == 0:
		return fmt.Sprintf("no live worker %s: start one with %s", whose, labelFlags(p.On))
	}
	able := slices.DeleteFunc(slices.Clone(fit), func(w Worker) bool { return w.lacks(p) != "" })
	if len(able) == 0 {
		return fmt.Sprintf("no live worker %s %s", whose, fit[0].lacks(p))
	}
	if !slices.ContainsFunc(able, func(w Worker) bool { return w.Free() > 0 }) {
		busy := make([]string, len(able))
		for i, w := range able {
			busy[i] = fmt.Sprintf("%s: %d of %d", w.Name, w.Busy, w.Capacity)
		}
		return fmt.Sprintf("the workers %s have no free slot (%s)", whose, strings.Join(busy, ", "))
	}
	if !leads {
		return "there is no leader to assign it: start a worker"
	}
	return "the leader assigns it to a worker in a moment"
}

func labelFlags(on core.Placement) string {
	if on.Worker != "" {
		return "--label " + core.NameLabel + "=" + on.Worker
	}
	return "--label " + strings.ReplaceAll(core.LabelsText(on.Labels), ", ", " --label ")
}
