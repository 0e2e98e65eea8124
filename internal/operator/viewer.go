package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type viewer struct {
	judge *judge
	work  *workload
}

func (s *viewer) execution(e *core.JobExecution) *Execution {
	newest := s.judge.asNewest(e)
	view := s.view(e, &newest)
	return &view
}

func (s *viewer) executions(ctx context.Context, records []core.JobExecution) ([]Execution, error) {
	judged, err := s.judge.judged(ctx, records)
	views, failure := s.views(ctx, judged)
	return views, errors.Join(err, failure)
}

func (s *viewer) views(ctx context.Context, judged []ports.JudgedExecution) ([]Execution, error) {
	waiting, err := s.work.waiting(ctx, judged)
	views := make([]Execution, len(judged))
	for i := range judged {
		views[i] = s.view(&judged[i].Execution, &judged[i].Newest)
		views[i].Waiting = waiting[judged[i].Execution.ID]
	}
	placed, failure := s.work.placed(ctx, judged)
	for i := range views {
		views[i].Placed = placed[views[i].ID]
	}
	return views, errors.Join(err, failure)
}

func (s *viewer) view(e *core.JobExecution, newest *ports.NewestAttempt) Execution {
	return Execution{
		ID: e.ID, InstanceID: e.InstanceID, JobName: e.JobName, Status: e.Status, ExitCode: e.ExitCode, Error: withUnreadable(e.Error, e.Unreadable),
		Attempt: e.Attempt, Epoch: e.Epoch, Params: Parameters{e.Params}, CreatedAt: utc(e.CreatedAt), StartedAt: utc(e.StartedAt), EndedAt: utc(e.EndedAt),
		Duration: seconds(elapsed(e.StartedAt, e.EndedAt, s.judge.now())),
		File:     e.Definition.Path, RedriveOf: e.RedriveOf, Parent: e.Parent, Gate: e.Gate, Actions: s.judge.actionsFor(e, newest), Owner: s.ownerOf(e, newest),
	}
}

// withUnreadable is the error of an execution, after stored data of it that cannot be read.
func withUnreadable(text string, unreadable error) string {
	switch {
	case unreadable == nil:
		return text
	case text == "":
		return unreadable.Error()
	}
	return unreadable.Error() + "; " + text
}

func (s *viewer) ownerOf(e *core.JobExecution, newest *ports.NewestAttempt) *Owner {
	if !e.Status.IsRunning() || e.Owner == (core.Owner{}) {
		return nil
	}
	return &Owner{
		Host: e.Owner.Host, PID: e.Owner.PID, LeaseUntil: utc(e.LeaseUntil), Dead: s.judge.dead(e.Owner),
		Lost: newest.Execution.ID == e.ID && newest.Lost,
	}
}

func (s *viewer) stepView(step *core.StepExecution) StepView {
	started := step.StartedAt
	if step.Status == core.StatusStarting { // a part that was planned, and waits
		started = time.Time{}
	}
	view := StepView{
		Step: step.Name, Execution: step.JobExecutionID, Status: step.Status, Exit: step.ExitCode, Error: withUnreadable(step.Error, step.Unreadable),
		Started: utc(started), Ended: utc(step.EndedAt), Out: step.Out, Gate: step.Gate, Child: ports.ChildOf(step),
		NewDefinition: hasNewDefinition(step), Warnings: step.Warnings(), ID: step.ID, Flow: step.Visit.Flow,
	}
	if step.Visit.Element != step.Name {
		view.Element = step.Visit.Element
	}
	if step.Owner != (core.Owner{}) {
		view.Process = &Process{step.Owner.Host, step.Owner.PID}
	}
	if step.Status.IsRunning() && !step.LeaseUntil.IsZero() {
		view.Worker = &Owner{
			Host: step.Owner.Host, PID: step.Owner.PID, LeaseUntil: utc(step.LeaseUntil), Dead: s.judge.dead(step.Owner), Lost: s.judge.lost(step.Owner, step.LeaseUntil),
		}
	}
	view.count(step.Counters)
	view.SkippedUndone = step.InHand.Skips()
	view.measure(step.Counters, elapsed(started, step.EndedAt, s.judge.now()))
	return view
}

func (s *viewer) partitionedView(step partitioned) StepView {
	view := s.stepView(step.StepExecution)
	if len(step.parts) == 0 {
		return view
	}
	p := &PartitionsView{Total: len(step.parts), Statuses: map[core.Status]int{}, List: []StepView{}}
	for i := range step.parts {
		part := &step.parts[i]
		p.Statuses[part.Status]++
		p.Branches = p.Branches || part.IsBranch()
		view := s.stepView(part)
		switch listed := view.Worker != nil || part.Status == core.StatusFailed || part.Status == core.StatusUnknown || isRefused(part); {
		case listed && len(p.List) == listedPartitions:
			p.Omitted++
		case listed:
			p.List = append(p.List, view)
		}
	}
	view.Partitions = p
	view.Warnings = append(view.Warnings, warningsOf(step.parts, view.Warnings)...)
	return view
}

// stepOf is a step of an execution with its parts: those that failed or are at work, or all, up to a bound.
func (s *viewer) stepOf(step *core.StepExecution, records *stepRecords, all bool) StepView {
	view := s.stepView(step)
	parts := records.ofStep[step.ID]
	if len(parts) == 0 {
		return view
	}
	most := listedPartitions
	if all {
		most = allPartitions
	}
	p := &PartitionsView{Total: len(parts), Statuses: parts.statuses(), Branches: parts.branches(), List: []StepView{}}
	for _, e := range parts.shown(most, all) {
		if part, known := records.record[e.ID]; known {
			p.List = append(p.List, s.stepView(&part))
		}
	}
	p.Omitted = len(parts.shown(len(parts), all)) - len(p.List)
	var warned []core.StepExecution
	for _, e := range parts.warned() {
		warned = append(warned, records.record[e.ID])
	}
	view.Partitions = p
	view.Warnings = append(view.Warnings, warningsOf(warned, view.Warnings)...)
	return view
}

// A round with a condition that did not hold does not count.
func (s *viewer) roundsView(rounds []partitioned) StepView {
	view := s.partitionedView(rounds[len(rounds)-1])
	var sum core.Counters
	var took time.Duration
	for _, r := range rounds {
		if r.Status == core.StatusCompleted && r.ExitCode == core.ExitNoop {
			continue
		}
		view.Rounds++
		sum, took = sum.Add(r.Counters), took+elapsed(r.StartedAt, r.EndedAt, s.judge.now())
	}
	if view.Rounds < 2 {
		view.Rounds = 0
		return view
	}
	view.count(sum)
	view.measure(sum, took)
	return view
}

type partitioned struct {
	*core.StepExecution
	parts []core.StepExecution
	// sum stands for the parts if they are not read.
	sum *partSum
}

type partSum struct {
	parts, completed int
	ports.PartTotal
}

func (p partitioned) count() int {
	if p.sum != nil {
		return p.sum.parts
	}
	return len(p.parts)
}

func splitPartitions(all []core.StepExecution) []partitioned {
	var steps []partitioned
	place := map[string]int{}
	for i := range all {
		s := &all[i]
		step, _, is := strings.Cut(s.Name, ":")
		if at, known := place[step]; is && known {
			steps[at].parts = append(steps[at].parts, *s)
			continue
		}
		place[s.Name] = len(steps)
		steps = append(steps, partitioned{StepExecution: s})
	}
	return steps
}

// The step's own counters are written only at its end.
func (p partitioned) total() (all, before core.Counters) {
	switch {
	case p.sum != nil:
		return p.sum.Before.Add(p.sum.Counters), p.sum.Before
	case len(p.parts) == 0:
		return p.Total(), p.Before
	}
	for _, part := range p.parts {
		all, before = all.Add(part.Total()), before.Add(part.Before)
	}
	return all, before
}

func (p partitioned) completed() (n int) {
	if p.sum != nil {
		return p.sum.completed
	}
	for _, part := range p.parts {
		if part.Status == core.StatusCompleted {
			n++
		}
	}
	return n
}

func oncePerStep(passed, ran []core.StepExecution) [][]partitioned {
	var groups [][]partitioned
	place := map[string]int{}
	steps := splitPartitions(ran)
	for _, s := range steps {
		place[s.Name] = -1 // it ran: its passed record is history
	}
	for _, s := range splitPartitions(passed) {
		if _, known := place[s.Name]; !known {
			place[s.Name] = len(groups)
			groups = append(groups, []partitioned{s})
		}
	}
	for _, s := range steps {
		if at := place[s.Name]; at >= 0 {
			groups[at] = append(groups[at], s)
			continue
		}
		place[s.Name] = len(groups)
		groups = append(groups, []partitioned{s})
	}
	return groups
}

func warningsOf(parts []core.StepExecution, known []string) (list []string) {
	seen, more := map[string]bool{}, 0
	for _, text := range known {
		seen[text] = true
	}
	for i := range parts {
		for _, text := range parts[i].Warnings() {
			switch {
			case seen[text]:
			case len(list) == listedPartitions:
				more++
			default:
				list = append(list, text)
			}
			seen[text] = true
		}
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("%d more warnings of partitions: show the execution with all partitions", more))
	}
	return list
}

func isRefused(part *core.StepExecution) bool {
	return part.Status == core.StatusStarting && part.Error != ""
}

func hasNewDefinition(s *core.StepExecution) bool {
	if s.Context == nil {
		return false
	}
	mark, _ := s.Context.Get(core.NewDefinitionKey)
	return mark == true
}
