package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// What would become of an item, besides written, filtered and skipped.
const (
	outcomeFailed = "failed"
	// outcomeUnknown is that of an item whose processor writes to a database: a dry
	// run does not let it.
	outcomeUnknown = "unknown"
)

// rehearsed is what a dry run says of a step, or of another element of the flow.
type rehearsed struct {
	Step string `json:"step"`
	// Kind is chunk, tasklet, partition, job, or that of another element: decision,
	// split, flow, group.
	Kind string `json:"kind"`
	// If is the condition under which it runs.
	If string `json:"if,omitempty"`
	// Finally says that it runs in the end, whatever happens.
	Finally bool `json:"finally,omitempty"`
	// Component is the tasklet.
	Component  string      `json:"component,omitempty"`
	Reader     *endRecord  `json:"reader,omitempty"`
	Processors []string    `json:"processors,omitempty"`
	Writers    []endRecord `json:"writers,omitempty"`
	// Partitions are those that it would have; the items are of the first one.
	Partitions []string `json:"partitions,omitempty"`
	Sampled    bool     `json:"sampled"`
	// Waits says why there are no items: what the step works on is not known, or not
	// there, before the steps before it have run.
	Waits string `json:"waits,omitempty"`
	// Error says why the step would fail before its first item.
	Error    string       `json:"error,omitempty"`
	Read     int          `json:"read"`
	Written  int          `json:"written"`
	Filtered int          `json:"filtered"`
	Skipped  int          `json:"skipped"`
	Failed   int          `json:"failed"`
	Unknown  int          `json:"unknown,omitempty"`
	Items    []itemRecord `json:"items,omitempty"`
}

// endRecord is where items come from or go to.
type endRecord struct {
	Component string   `json:"component"`
	Target    string   `json:"target,omitempty"`
	Database  string   `json:"database,omitempty"`
	Columns   []string `json:"columns,omitempty"`
	file      bool
}

// itemRecord is an item and its way through the processors.
type itemRecord struct {
	Number int             `json:"number"`
	Path   string          `json:"path,omitempty"`
	Line   int64           `json:"line,omitempty"`
	Read   json.RawMessage `json:"read"`
	Stages []stageRecord   `json:"stages,omitempty"`
	// Outcome is written, filtered, skipped, failed or unknown.
	Outcome string `json:"outcome"`
	Phase   string `json:"phase,omitempty"`
	Class   string `json:"class,omitempty"`
	Error   string `json:"error,omitempty"`
}

// stageRecord is what a processor made of an item.
type stageRecord struct {
	Processor string          `json:"processor"`
	Item      json.RawMessage `json:"item"`
}

func (i itemRecord) place() string {
	if at := (core.Meta{Path: i.Path, Line: i.Line}).String(); at != "" {
		return at
	}
	return fmt.Sprintf("item %d", i.Number)
}

// run visits all elements, in the order of the definition. Only the end of ctx is
// an error.
func (r *rehearsal) run(ctx context.Context) error {
	if err := r.flow(ctx, r.job.Flow, false); err != nil {
		return err
	}
	return r.flow(ctx, r.job.Finally, true)
}

func (r *rehearsal) flow(ctx context.Context, f core.Flow, finally bool) error {
	for _, at := range f.Elements {
		of := &rehearsed{Step: at.ElementName(), Kind: elementKind(at), Finally: finally}
		if c := at.Condition(); c != nil {
			of.If = c.Text
		}
		if e, ok := at.(*core.StepElement); ok {
			of.Step = e.Step.Name()
			if err := r.step(ctx, e.Step, of); err != nil {
				return err
			}
		}
		r.steps = append(r.steps, of)
		for _, inner := range core.Flows(at) {
			if err := r.flow(ctx, inner, finally); err != nil {
				return err
			}
		}
	}
	return nil
}

func elementKind(at core.Element) string {
	switch e := at.(type) {
	case *core.StepElement:
		return e.Step.Kind()
	case *core.DecisionElement:
		return "decision"
	case *core.SplitElement:
		return "split"
	case *core.FlowElement:
		return "flow"
	case *core.AtomicElement:
		return "group"
	}
	return "element"
}

// step samples a chunk step, or the first partition of one; others would run.
func (r *rehearsal) step(ctx context.Context, s core.Step, of *rehearsed) error {
	r.describe(of)
	run := &core.StepRun{
		Data: core.StepContext{
			Job:   &core.JobExecution{JobName: r.job.Name, Params: r.params, Context: core.NewExecutionContext()},
			Steps: map[string]core.StepExecution{},
		},
	}
	var err error
	if whole, ok := s.(interface{ Inner() core.Step }); ok {
		sampled, is := whole.Inner().(*chunk.Step)
		var parts []core.Partition
		if parts, err = partitionsOf(ctx, s, run); err != nil {
			return r.unable(ctx, of, err)
		}
		for _, part := range parts {
			of.Partitions = append(of.Partitions, part.Name)
		}
		if !is || len(parts) == 0 {
			return nil
		}
		first := parts[0]
		run.Data.Name, run.Data.Part = core.PartName(s.Name(), first.Name), &first
		run.Step = &core.StepExecution{Name: run.Data.Name, Context: first.Context}
		s = sampled
	}
	sampled, ok := s.(*chunk.Step)
	if !ok {
		return nil
	}
	of.Sampled = true
	err = sampled.Sample(ctx, run, r.n, func(got chunk.Sampled) error {
		of.see(got)
		return nil
	})
	return r.unable(ctx, of, err)
}

// unable decides about a step that could not be sampled: it has to wait for the
// steps before it, or it would fail.
func (r *rehearsal) unable(ctx context.Context, of *rehearsed, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	of.Sampled = false
	text := oneLine(err.Error())
	if needs := r.needs(of.Step); len(needs) > 0 {
		of.Waits = "it needs " + andWords(needs) + ", which is known when the steps before it have run"
		return nil
	}
	if makers := r.makers(of, err); len(makers) > 0 {
		of.Waits = text + " (" + andWords(makers) + " may make it)"
		return nil
	}
	of.Error = text
	return nil
}

// needs are the results of other steps that the step's components read.
func (r *rehearsal) needs(step string) []string {
	var needs []string
	for _, u := range r.uses {
		for _, name := range u.Needs {
			head, _, _ := strings.Cut(name, ".")
			if u.Step == step && (head == "steps" || head == "context") && !slices.Contains(needs, name) {
				needs = append(needs, name)
			}
		}
	}
	return needs
}

// makers are the steps before that may make what is not there: those that write
// the file, those that write tables, and those of which nobody knows what they do.
func (r *rehearsal) makers(of *rehearsed, err error) []string {
	file, table := errors.Is(err, fs.ErrNotExist), isMissingTable(err)
	var makers []string
	for _, before := range r.steps {
		for _, w := range before.Writers {
			if file && w.file && of.Reader != nil && w.Target == of.Reader.Target || table && w.Database != "" {
				makers = append(makers, before.Step)
			}
		}
		if (file || table) && (before.Kind == "tasklet" || before.Kind == "job") {
			makers = append(makers, before.Step)
		}
	}
	return slices.Compact(makers)
}

// isMissingTable: SQLite has no code of its own for it.
func isMissingTable(err error) bool {
	return dberr.SQLState(err) == "42P01" || dberr.SQLiteCode(err) == 1 && strings.Contains(err.Error(), "no such table")
}

// describe says what the job file says of the step.
func (r *rehearsal) describe(of *rehearsed) {
	for _, u := range r.uses {
		if u.Step != of.Step {
			continue
		}
		end := endRecord{Component: u.Component, Target: u.Target, Database: u.Database, Columns: u.Columns, file: u.File}
		if end.Target == "" {
			end.Target, end.file = u.Written, false
		}
		switch u.Kind {
		case registry.KindReader:
			of.Reader = &end
		case registry.KindProcessor:
			of.Processors = append(of.Processors, u.Component)
		case registry.KindWriter:
			of.Writers = append(of.Writers, end)
		case registry.KindTasklet:
			of.Component = u.Component
		case registry.KindListener, registry.KindPartitioner, registry.KindDecider:
		}
	}
}

// see keeps an outcome.
func (s *rehearsed) see(got chunk.Sampled) {
	item := itemRecord{
		Number: got.Number, Path: got.Meta.Path, Line: got.Meta.Line, Read: got.Read, Outcome: string(got.Fate),
		Phase: string(got.Phase), Class: got.Class,
	}
	for i, stage := range got.Stages {
		name := "processor"
		if i < len(s.Processors) {
			name = s.Processors[i]
		}
		item.Stages = append(item.Stages, stageRecord{name, stage})
	}
	if got.Err != nil {
		item.Error = oneLine(got.Err.Error())
	}
	if got.Phase != core.PhaseRead {
		s.Read++
	}
	switch {
	case got.Fate == chunk.FateFailed && dberr.IsReadOnly(got.Err):
		item.Outcome = outcomeUnknown
		s.Unknown++
	case got.Fate == chunk.FateFailed:
		s.Failed++
	case got.Fate == chunk.FateSkipped:
		s.Skipped++
	case got.Fate == chunk.FateFiltered:
		s.Filtered++
	case got.Fate == chunk.FateWritten:
		s.Written++
	}
	s.Items = append(s.Items, item)
}

// partitionsOf asks the step what its partitions are, as it would ask at its start:
// the plan is caught on its way to the repository, and nothing of it is run.
func partitionsOf(ctx context.Context, s core.Step, run *core.StepRun) ([]core.Partition, error) {
	c := &planCatcher{}
	own := *run
	own.Services.Fill()
	own.Services.Plans, own.Services.Executor = c, c
	own.Step = &core.StepExecution{Name: s.Name(), Context: core.NewExecutionContext()}
	if err := s.Execute(ctx, &own); err != nil && !errors.Is(err, errCaught) {
		return nil, err
	}
	return c.parts, nil
}

var errCaught = errors.New("a dry run stores no plan")

// planCatcher stands for the repository; nothing but a plan may be asked of it.
type planCatcher struct {
	core.PartitionPlans
	parts []core.Partition
}

func (c *planCatcher) PlanPartitions(_ context.Context, _ core.JobRef, plan core.PartitionPlan) ([]core.StepExecution, error) {
	c.parts = plan.Parts
	return nil, errCaught
}

func (c *planCatcher) Execute(context.Context, core.Step, *core.StepRun) (*core.StepExecution, error) {
	return nil, errCaught
}

// changes are the stages that made something else of the item.
func (i itemRecord) changes() []stageRecord {
	var list []stageRecord
	before := i.Read
	for _, s := range i.Stages {
		if !bytes.Equal(before, s.Item) {
			list = append(list, s)
		}
		before = s.Item
	}
	return list
}
