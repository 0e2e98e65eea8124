package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The words of a CompareRequest.
const (
	// WithPrevious is the newest execution of the same job before it.
	WithPrevious = "previous"
	// WithTypical is the medians of the last ten executions of the job before it that completed.
	WithTypical = "typical"
)

const (
	typicalRuns  = 10
	comparedPage = 100 // executions that are read, since redrives among them do not count
)

// CompareRequest names an execution, and with which one it is compared.
type CompareRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// With is the number of an execution of the same job, "previous" or "typical"; empty means
	// previous.
	With string `json:"with,omitempty"`
}

// Comparison is an execution beside another one of its job, or beside the usual values.
type Comparison struct {
	JobName   string   `json:"job"`
	Execution Compared `json:"execution"`
	// With has no number for the medians of several executions.
	With Compared `json:"with"`
	// Typical lists the executions of the medians, newest first.
	Typical []core.JobExecutionID `json:"typical,omitempty"`
	// Duration: of the executions.
	Duration Figure `json:"duration"`
	// Parameters that differ.
	Parameters []ParameterChange `json:"parameters,omitempty"`
	// Definition has the differences between the job files, Diff the lines.
	Definition []jobfile.Change `json:"definition,omitempty"`
	Diff       string           `json:"diff,omitempty"`
	// DefinitionProblem is why they cannot be compared.
	DefinitionProblem string `json:"definition_problem,omitempty"`
	// Steps are in the order of the executions, the one before the other.
	Steps []StepComparison `json:"steps"`
	// Decisions and gates that differ.
	Decisions []VerdictChange `json:"decisions,omitempty"`
	Gates     []VerdictChange `json:"gates,omitempty"`
	// Skips are by step, phase and class.
	Skips []SkipComparison `json:"skips,omitempty"`
}

// Compared is one side of a comparison.
type Compared struct {
	ID      core.JobExecutionID `json:"execution,omitempty"`
	Status  core.Status         `json:"status,omitempty"`
	Attempt int                 `json:"attempt,omitempty"`
	Started time.Time           `json:"started,omitzero"`
	Error   string              `json:"error,omitempty"`
}

// Figure is a number of the two sides.
type Figure struct {
	This float64 `json:"this"`
	With float64 `json:"with"`
	// Percent is the change from With to This; nil without a base.
	Percent *float64 `json:"percent,omitempty"`
}

// ParameterChange is a parameter with another value; a missing one is nil.
type ParameterChange struct {
	Name string `json:"name"`
	This any    `json:"this"`
	With any    `json:"with"`
}

// VerdictChange is a decision or a gate with another answer; empty if there was none.
type VerdictChange struct {
	Element string `json:"element"`
	This    string `json:"this"`
	With    string `json:"with"`
}

// StepComparison is a step on both sides. Counters include continued attempts, duration and rate belong to
// the compared attempts.
type StepComparison struct {
	Step string `json:"step"`
	// OnlyHere and OnlyThere: the other side did not run it.
	OnlyHere  bool   `json:"only_this,omitempty"`
	OnlyThere bool   `json:"only_with,omitempty"`
	Read      Figure `json:"read,omitzero"`
	Written   Figure `json:"written,omitzero"`
	Filtered  Figure `json:"filtered,omitzero"`
	Skipped   Figure `json:"skipped,omitzero"`
	Duration  Figure `json:"duration,omitzero"`
	Rate      Figure `json:"rows_per_second,omitzero"`
}

// SkipComparison counts skips of one step, phase and class.
type SkipComparison struct {
	Step  string     `json:"step"`
	Phase core.Phase `json:"phase"`
	Class string     `json:"class"`
	Count Figure     `json:"count"`
	// More: there may be more, since only the first 5,000 items of an execution are counted.
	More bool `json:"more,omitempty"`
}

type comparer struct {
	view    *viewer
	jobs    *jobs
	records compareRecords
}

type compareRecords interface {
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
	Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error)
	SkipCounts(ctx context.Context, id core.JobExecutionID) ([]ports.SkipCount, error)
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error)
}

// Compare compares an execution. It may return core.ErrNotFound or a *RequestError.
func (s *comparer) Compare(ctx context.Context, req CompareRequest) (*Comparison, error) {
	exec, err := seen(ctx, s.records, req.Execution)
	if err != nil {
		return nil, err
	}
	others, err := s.others(ctx, exec, req.With)
	if err != nil {
		return nil, err
	}
	c := &Comparison{JobName: exec.JobName, Execution: comparedOf(exec), Duration: Figure{This: s.took(exec.StartedAt, exec.EndedAt)}, Steps: []StepComparison{}}
	ids := []core.JobExecutionID{exec.ID}
	var durations []float64
	for i := range others {
		ids = append(ids, others[i].ID)
		durations = append(durations, s.took(others[i].StartedAt, others[i].EndedAt))
	}
	c.Duration.with(median(durations))
	steps, err := s.records.StepsOf(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("read the steps of the executions: %w", err)
	}
	c.Steps = s.steps(ids, steps)
	if req.With == WithTypical {
		c.Typical = ids[1:]
		return c, nil
	}
	c.With = comparedOf(&others[0])
	return c, s.details(ctx, c, exec, &others[0], steps)
}

// TypicalDuration returns the median of the seconds that the last ten executions of the job before this one took that
// completed, and false if there are none.
func (s *comparer) TypicalDuration(ctx context.Context, of *Execution) (float64, bool, error) {
	others, err := s.others(ctx, &core.JobExecution{ID: of.ID, JobName: of.JobName}, WithTypical)
	if _, none := errors.AsType[*RequestError](err); none {
		return 0, false, nil
	}
	var took []float64
	for i := range others {
		took = append(took, s.took(others[i].StartedAt, others[i].EndedAt))
	}
	return median(took), err == nil, err
}

// others are the executions of the other side: one, or several for the medians.
func (s *comparer) others(ctx context.Context, exec *core.JobExecution, with string) ([]core.JobExecution, error) {
	filter, most := ports.ExecutionFilter{JobName: exec.JobName, Before: exec.ID, Brief: true, Limit: comparedPage}, 1
	switch with {
	case "", WithPrevious:
	case WithTypical:
		filter.Statuses, most = []core.Status{core.StatusCompleted}, typicalRuns
	default:
		id, err := strconv.ParseInt(with, 10, 64)
		if err != nil || id <= 0 {
			return nil, &RequestError{Field: "with", Value: with, Reason: "expected the number of an execution, or a word", Allowed: []string{WithPrevious, WithTypical}}
		}
		other, err := seen(ctx, s.records, core.JobExecutionID(id))
		if err != nil {
			return nil, err
		}
		if other.JobName != exec.JobName {
			return nil, &RequestError{Field: "with", Value: with, Reason: fmt.Sprintf("it is of job %s, and execution %d of job %s: executions of one job are compared", other.JobName, exec.ID, exec.JobName)}
		}
		return []core.JobExecution{*other}, nil
	}
	list, err := s.records.Executions(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("read the executions before %d: %w", exec.ID, err)
	}
	// A redrive runs a few skipped items of another execution: its numbers compare with no run's.
	list = slices.DeleteFunc(list, func(e core.JobExecution) bool { return e.RedriveOf != 0 })
	list = list[:min(len(list), most)]
	if len(list) == 0 {
		return nil, &RequestError{Field: "with", Value: cmp.Or(with, WithPrevious), Reason: fmt.Sprintf("job %s has no such execution before execution %d", exec.JobName, exec.ID)}
	}
	if with == WithTypical {
		return list, nil
	}
	other, err := seen(ctx, s.records, list[0].ID) // with its definition
	if err != nil {
		return nil, err
	}
	return []core.JobExecution{*other}, nil
}

// details are the differences that two executions have and medians have not.
func (s *comparer) details(ctx context.Context, c *Comparison, this, with *core.JobExecution, steps map[core.JobExecutionID][]core.StepExecution) error {
	c.Parameters = parameterChanges(this.Params, with.Params)
	s.definitions(c, this, with)
	var err error
	if c.Decisions, err = s.decisions(ctx, this, with); err != nil {
		return err
	}
	c.Gates = verdictChanges(gatesOf(this, steps[this.ID]), gatesOf(with, steps[with.ID]))
	c.Skips, err = s.skips(ctx, this, with, steps)
	return err
}

func comparedOf(e *core.JobExecution) Compared {
	return Compared{ID: e.ID, Status: e.Status, Attempt: e.Attempt, Started: utc(e.StartedAt), Error: e.Error}
}

func (s *comparer) took(from, to time.Time) float64 {
	return seconds(elapsed(from, to, s.view.judge.now()))
}

func (f *Figure) with(other float64) {
	f.With = other
	if other != 0 {
		const tenths = 10
		percent := math.Round((f.This-other)/other*100*tenths) / tenths
		f.Percent = &percent
	}
}

type stepFigures struct{ read, written, filtered, skipped, duration, rate float64 }

// figures adds up the rounds and the parts of each step of an execution.
func (s *comparer) figures(steps []core.StepExecution) (names []string, all map[string]stepFigures) {
	all = map[string]stepFigures{}
	for _, rounds := range oncePerStep(nil, steps) {
		var f stepFigures
		var own core.Counters
		var took time.Duration
		for _, round := range rounds {
			total, before := round.total()
			f.read += float64(total.Read)
			f.written += float64(total.Write)
			f.filtered += float64(total.Filter)
			f.skipped += float64(total.Skips())
			own, took = own.Add(total.Sub(before)), took+elapsed(round.StartedAt, round.EndedAt, s.view.judge.now())
		}
		f.duration = seconds(took)
		if took > 0 {
			f.rate = float64(int64(float64(own.Rows()) / took.Seconds()))
		}
		name := rounds[0].Name
		names, all[name] = append(names, name), f
	}
	return names, all
}

func (s *comparer) steps(ids []core.JobExecutionID, steps map[core.JobExecutionID][]core.StepExecution) []StepComparison {
	names, this := s.figures(steps[ids[0]])
	with := map[string][]stepFigures{}
	for _, id := range ids[1:] {
		inOrder, figures := s.figures(steps[id])
		for _, name := range inOrder {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			with[name] = append(with[name], figures[name])
		}
	}
	list := make([]StepComparison, len(names))
	for i, name := range names {
		own, here := this[name]
		list[i] = StepComparison{Step: name, OnlyHere: len(with[name]) == 0, OnlyThere: !here}
		for figure, of := range map[*Figure]func(stepFigures) float64{
			&list[i].Read: func(f stepFigures) float64 { return f.read }, &list[i].Written: func(f stepFigures) float64 { return f.written },
			&list[i].Filtered: func(f stepFigures) float64 { return f.filtered }, &list[i].Skipped: func(f stepFigures) float64 { return f.skipped },
			&list[i].Duration: func(f stepFigures) float64 { return f.duration }, &list[i].Rate: func(f stepFigures) float64 { return f.rate },
		} {
			values := make([]float64, len(with[name]))
			for n, f := range with[name] {
				values[n] = of(f)
			}
			figure.This = of(own)
			figure.with(median(values))
		}
	}
	return list
}

func parameterChanges(this, with core.Parameters) []ParameterChange {
	values := func(p core.Parameters) map[string]any {
		all := map[string]any{}
		for _, q := range p.All() {
			all[q.Name] = parameterValue(q)
		}
		return all
	}
	a, b := values(this), values(with)
	var list []ParameterChange
	for _, p := range slices.Concat(this.All(), with.All()) {
		known := slices.ContainsFunc(list, func(c ParameterChange) bool { return c.Name == p.Name })
		if !known && a[p.Name] != b[p.Name] {
			list = append(list, ParameterChange{p.Name, a[p.Name], b[p.Name]})
		}
	}
	return list
}

func (s *comparer) definitions(c *Comparison, this, with *core.JobExecution) {
	if this.Definition.Hash == with.Definition.Hash {
		return
	}
	before, _, err := s.jobs.storedFile(with.Definition, with.JobName)
	var after *jobfile.File
	if err == nil {
		after, _, err = s.jobs.storedFile(this.Definition, this.JobName)
	}
	if err != nil {
		c.DefinitionProblem = secret.Text(err.Error())
		return
	}
	c.Definition, c.Diff = after.Since(before, with.ID, this.Params)
}

func (s *comparer) decisions(ctx context.Context, this, with *core.JobExecution) ([]VerdictChange, error) {
	verdicts := func(e *core.JobExecution) (map[string]string, error) {
		list, err := decisionsOf(ctx, s.records, e)
		all := map[string]string{}
		for _, d := range list {
			all[d.Element] = d.Verdict
		}
		return all, err
	}
	a, err := verdicts(this)
	if err != nil {
		return nil, err
	}
	b, err := verdicts(with)
	return verdictChanges(a, b), err
}

func gatesOf(e *core.JobExecution, steps []core.StepExecution) map[string]string {
	all := map[string]string{}
	for i := range steps {
		if steps[i].Gate != "" {
			all[steps[i].Name] = steps[i].Gate
		}
	}
	if e.Gate != "" {
		all[""] = e.Gate
	}
	return all
}

func verdictChanges(this, with map[string]string) []VerdictChange {
	var list []VerdictChange
	for element, text := range this {
		if with[element] != text {
			list = append(list, VerdictChange{element, text, with[element]})
		}
	}
	for element, text := range with {
		if _, both := this[element]; !both {
			list = append(list, VerdictChange{element, "", text})
		}
	}
	slices.SortFunc(list, func(a, b VerdictChange) int { return cmp.Compare(a.Element, b.Element) })
	return list
}

func (s *comparer) skips(ctx context.Context, this, with *core.JobExecution, steps map[core.JobExecutionID][]core.StepExecution) ([]SkipComparison, error) {
	var list []SkipComparison
	for side, e := range []*core.JobExecution{this, with} {
		if !slices.ContainsFunc(steps[e.ID], func(s core.StepExecution) bool { return s.Counters.Skips() > 0 }) {
			continue
		}
		counts, err := s.records.SkipCounts(ctx, e.ID)
		if err != nil {
			return nil, fmt.Errorf("count the skipped items of execution %d: %w", e.ID, err)
		}
		for _, n := range counts {
			i := slices.IndexFunc(list, func(c SkipComparison) bool { return c.Step == n.Step && c.Phase == n.Phase && c.Class == n.Class })
			if i < 0 {
				i, list = len(list), append(list, SkipComparison{Step: n.Step, Phase: n.Phase, Class: n.Class})
			}
			list[i].More = list[i].More || n.More
			if side == 0 {
				list[i].Count.This = float64(n.Count)
			} else {
				list[i].Count.with(float64(n.Count))
			}
		}
	}
	return list, nil
}
