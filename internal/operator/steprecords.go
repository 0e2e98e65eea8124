package operator

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// stepRecords are the steps of an execution and the newest ones of its instance. Of parts they have the entries,
// and the records of the few that a view lists: a step may have 100,000.
type stepRecords struct {
	// own are the steps of the execution without parts, and its failed parts, by ID.
	own []core.StepExecution
	// ofStep are the parts of a step of the execution.
	ofStep map[core.StepExecutionID]partEntries
	// history are the newest executions of the steps, and of some parts, by name; it has no later execution.
	history map[string]ports.StepHistory
	// parts are the newest executions of a step's parts, by the step's name.
	parts map[string]partEntries
	// record are those that were read.
	record map[core.StepExecutionID]core.StepExecution
	// names are the names of the execution's steps and their parts.
	names map[core.StepExecutionID]string
	// skips: a step of the execution has skipped items.
	skips bool
}

// How many partitions of a step a view has at most: of those that failed or are at work, and of all. Parts
// lists the others.
const (
	listedPartitions = 100
	allPartitions    = 1000
)

// partEntries are parts by ID.
type partEntries []ports.StepEntry

type stepReader interface {
	StepEntries(ctx context.Context, id core.JobInstanceID, since, until core.JobExecutionID) ([]ports.StepEntry, error)
	StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error)
	StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error)
}

// fewSteps are read at once, with all of their columns.
const fewSteps = 50

// readSteps reads the steps of an execution. most is how many parts of a step may be listed, all whether complete
// ones are.
func readSteps(ctx context.Context, records stepReader, judged *ports.JudgedExecution, most int, all bool) (*stepRecords, error) {
	e := &judged.Execution
	if judged.Steps > fewSteps {
		entries, err := readEntries(ctx, records, e, e.ID)
		if err != nil {
			return nil, err
		}
		return readRecords(ctx, records, e, entries, most, all)
	}
	found, err := records.StepsOf(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	steps := found[e.ID]
	entries := make([]ports.StepEntry, len(steps))
	for i := range steps {
		entries[i] = entryOf(&steps[i])
	}
	return readRecords(ctx, knownSteps(steps), e, entries, most, all)
}

// entryOf is the entry that StepEntries has of a step.
func entryOf(s *core.StepExecution) ports.StepEntry {
	return ports.StepEntry{
		ID: s.ID, Execution: s.JobExecutionID, Manager: s.Manager, Name: s.Name, Status: s.Status,
		Noop: s.ExitCode == core.ExitNoop, Branch: s.Visit.Flow != "", Skips: s.Counters.Skips() > 0, Warns: len(s.Warnings()) > 0,
		Leased: !s.LeaseUntil.IsZero(), HasError: s.Error != "",
	}
}

// knownSteps are steps that were read already.
type knownSteps []core.StepExecution

// StepsByID returns some of them.
func (s knownSteps) StepsByID(_ context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error) {
	found := make(map[core.StepExecutionID]core.StepExecution, len(ids))
	for i := range s {
		if slices.Contains(ids, s[i].ID) {
			found[s[i].ID] = s[i]
		}
	}
	return found, nil
}

func readEntries(ctx context.Context, records interface {
	StepEntries(ctx context.Context, id core.JobInstanceID, since, until core.JobExecutionID) ([]ports.StepEntry, error)
}, e *core.JobExecution, since core.JobExecutionID) ([]ports.StepEntry, error) {
	entries, err := records.StepEntries(ctx, e.InstanceID, since, e.ID)
	if err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
	}
	slices.SortFunc(entries, func(a, b ports.StepEntry) int { return cmp.Compare(a.ID, b.ID) })
	return entries, nil
}

// readRecords reads the steps with these entries. Of entries that are not parts, only data that never change count.
func readRecords(ctx context.Context, records interface {
	StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error)
}, e *core.JobExecution, entries []ports.StepEntry, most int, all bool) (_ *stepRecords, err error) {
	s := &stepRecords{ofStep: map[core.StepExecutionID]partEntries{}, history: map[string]ports.StepHistory{}, parts: map[string]partEntries{}, names: map[core.StepExecutionID]string{}}
	newest, attempts := map[string]int{}, map[string]int{}
	for i := range entries {
		of := &entries[i]
		newest[of.Name] = i
		if !of.Noop {
			attempts[of.Name]++
		}
		if of.Execution == e.ID {
			s.names[of.ID] = of.Name
			if of.Manager != 0 {
				s.skips = s.skips || of.Skips
				s.ofStep[of.Manager] = append(s.ofStep[of.Manager], *of)
			}
		}
	}
	var wanted []core.StepExecutionID
	for i := range entries {
		of := &entries[i]
		switch last := newest[of.Name] == i; {
		case of.Manager == 0 && (last || of.Execution == e.ID):
			wanted = append(wanted, of.ID)
		case of.Manager != 0 && last:
			name, _, _ := strings.Cut(of.Name, ":")
			s.parts[name] = append(s.parts[name], *of)
		}
	}
	for _, of := range s.ofStep {
		wanted = append(append(wanted, idsOf(of.shown(most, all))...), idsOf(of.warned())...)
	}
	for _, of := range s.parts {
		wanted = append(wanted, idsOf(of.left(most))...)
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	if s.record, err = records.StepsByID(ctx, wanted); err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
	}
	for _, id := range wanted {
		step, is := s.record[id]
		if !is { // it was purged in between
			continue
		}
		s.skips = s.skips || step.JobExecutionID == e.ID && step.Counters.Skips() > 0
		if step.JobExecutionID == e.ID && (step.Manager == 0 || step.Error != "") {
			s.own = append(s.own, step)
		}
		if entries[newest[step.Name]].ID == id {
			s.history[step.Name] = ports.StepHistory{Last: step, Attempts: attempts[step.Name]}
		}
	}
	return s, nil
}

// stageOf names the state of the steps without parts: it changes whenever one of them begins or ends.
func (s *stepRecords) stageOf(e *core.JobExecution, newest core.JobExecutionID) string {
	sum := fnv.New64a()
	for i := range s.own {
		if step := &s.own[i]; step.Manager == 0 {
			_, _ = fmt.Fprint(sum, step.ID, step.Status, " ") //nolint:errcheck // it never fails
		}
	}
	return fmt.Sprintf("%d %s %d %x", newest, e.Status, e.Epoch, sum.Sum64())
}

func idsOf(entries []ports.StepEntry) []core.StepExecutionID {
	ids := make([]core.StepExecutionID, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	return ids
}

func (s *stepRecords) hasOpenParts() bool {
	for _, parts := range s.ofStep {
		if slices.ContainsFunc(parts, func(e ports.StepEntry) bool { return !e.Status.IsOver() }) {
			return true
		}
	}
	return false
}

// statuses counts them.
func (p partEntries) statuses() map[core.Status]int {
	counts := map[core.Status]int{}
	for i := range p {
		counts[p[i].Status]++
	}
	return counts
}

func (p partEntries) branches() bool {
	return slices.ContainsFunc(p, func(e ports.StepEntry) bool { return e.Branch })
}

// shown are the first parts that failed or that a worker has, or the first ones of all.
func (p partEntries) shown(most int, all bool) partEntries {
	return p.first(most, func(e *ports.StepEntry) bool {
		refused := e.Status == core.StatusStarting && e.HasError
		return all || refused || e.Status == core.StatusFailed || e.Status == core.StatusUnknown || e.Leased && e.Status.IsRunning()
	})
}

// left are the first parts that are not complete; of a few parts, all.
func (p partEntries) left(most int) partEntries {
	return p.first(most, p.isLeft)
}

func (p partEntries) isLeft(e *ports.StepEntry) bool {
	return len(p) <= listedPartitions || e.Status != core.StatusCompleted
}

// warned are the first parts with warnings.
func (p partEntries) warned() partEntries {
	return p.first(allPartitions, func(e *ports.StepEntry) bool { return e.Warns })
}

func (p partEntries) first(most int, which func(e *ports.StepEntry) bool) partEntries {
	var list partEntries
	for i := range p {
		if len(list) < most && which(&p[i]) {
			list = append(list, p[i])
		}
	}
	return list
}

func (p partEntries) count(which func(e *ports.StepEntry) bool) (n int) {
	for i := range p {
		if which(&p[i]) {
			n++
		}
	}
	return n
}
