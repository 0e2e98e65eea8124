package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// showing are the flags of show.
type showing struct{ definition, partitions, audit bool }

func (p *program) showCommand() *cobra.Command {
	var o showing
	cmd := &cobra.Command{
		Use:               "show EXECUTION",
		Short:             "Show an execution: parameters, steps, gates, decisions, errors, and how to go on",
		Example:           "  " + p.app.Name + " show 12",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return p.show(cmd.Context(), id, o)
		},
	}
	cmd.Flags().BoolVar(&o.definition, "definition", false, "print the job file as it was when the execution began")
	cmd.Flags().BoolVar(&o.partitions, "partitions", false, "show every partition, not only those that failed")
	cmd.Flags().BoolVar(&o.audit, "audit", false, "show every change of a status, and who asked for it")
	cmd.MarkFlagsMutuallyExclusive("definition", "partitions")
	cmd.MarkFlagsMutuallyExclusive("definition", "audit")
	p.addFormatFlag(cmd)
	return cmd
}

// page is everything about one execution.
type page struct {
	exec     core.JobExecution
	steps    []core.StepExecution // without partitions
	parts    map[core.StepExecutionID]partitions
	redrives []core.JobExecution
	audit    []core.AuditEntry
	verdicts []verdict
	all      bool // partitions
}

func (p *program) show(ctx context.Context, id core.JobExecutionID, o showing) error {
	if err := p.configure(); err != nil {
		return err
	}
	shown := page{all: o.partitions}
	exec, err := p.execution(ctx, id, func(s *Session) (err error) {
		if o.definition {
			return nil
		}
		steps, err := s.Repository.Steps(ctx, id)
		if err != nil {
			return fmt.Errorf("read the steps of execution %d: %w", id, err)
		}
		shown.steps, shown.parts = splitPartitions(steps)
		if o.audit {
			if shown.audit, err = s.Repository.Audit(ctx, id); err != nil {
				return fmt.Errorf("read the audit of execution %d: %w", id, err)
			}
		}
		shown.redrives, err = s.Repository.Executions(ctx, core.ExecutionFilter{RedriveOf: id, Limit: mostRedrives})
		return err
	})
	switch {
	case err != nil:
		return err
	case o.definition:
		return p.print(exec.Definition.Text)
	}
	shown.exec, shown.verdicts = *exec, verdicts(exec.Context)
	if p.format == formatJSON {
		return p.printJSON(p.pageRecord(shown))
	}
	return p.print(p.executionPage(shown))
}

// mostRedrives is how many redrives of an execution are named.
const mostRedrives = 100

func (p *program) pageRecord(shown page) executionRecord {
	r := p.executionRecord(shown.exec)
	r.Database = p.databaseText(p.settings.Repository.Database)
	r.Steps = p.stepRecords(shown.steps, shown.parts, shown.all)
	for _, e := range shown.redrives {
		r.RedrivenBy = append(r.RedrivenBy, int64(e.ID))
	}
	for _, v := range shown.verdicts {
		r.Decisions = append(r.Decisions, decisionRecord{v.kind, v.element, v.text})
	}
	for _, a := range shown.audit {
		r.Audit = append(r.Audit, auditRecord{
			At: timeRecord(a.At), Act: a.Act, Actor: a.Actor, Step: int64(a.Step),
			From: string(a.From), To: string(a.To), Epoch: a.Epoch, Detail: a.Detail,
		})
	}
	return r
}

// executionPage is the page for people.
func (p *program) executionPage(shown page) string {
	var b strings.Builder
	e := shown.exec
	b.WriteString(p.headline(e) + "\n\n")
	p.writeFacts(&b, shown)
	if e.Params.Len() > 0 {
		b.WriteString("\n" + parameterTable(e.Params))
	}
	if len(shown.steps) > 0 {
		b.WriteString("\n" + stepTable(shown.steps, e.ID, p.now()))
	}
	for _, s := range shown.steps {
		p.writeStep(&b, s, shown)
	}
	if len(shown.verdicts) > 0 {
		b.WriteString("\n" + verdictTable(shown.verdicts))
	}
	if len(shown.audit) > 0 {
		b.WriteString("\n" + auditTable(shown.audit, shown.steps, shown.parts))
	}
	b.WriteString(p.skipsLine(e, shown.steps))
	if hints := p.pageHints(e); len(hints) > 0 {
		b.WriteString("\n" + strings.Join(hints, "\n") + "\n")
	}
	return b.String()
}

func (p *program) writeFacts(b *strings.Builder, shown page) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "%-12s%s\n", name, text)
		}
	}
	e := shown.exec
	line("instance", fmt.Sprint(e.InstanceID))
	line("file", e.Definition.Path)
	if e.RedriveOf != 0 {
		line("redrive of", "execution "+idText(e.RedriveOf))
	}
	if e.Parent != 0 {
		line("child of", "execution "+idText(e.Parent))
	}
	line("redriven by", redrivesText(shown.redrives))
	line("created", timeText(e.CreatedAt))
	line("started", timeText(e.StartedAt))
	line("ended", timeText(e.EndedAt))
	if e.Status.IsRunning() {
		line("owner", fmt.Sprintf("process %d on %s, lease until %s", e.Owner.PID, e.Owner.Host, timeText(e.LeaseUntil)))
		if e.StopRequested {
			line("stop", "requested")
		}
	}
	line("error", oneLine(e.Error))
	if !strings.Contains(e.Error, e.Gate) {
		line("expect", oneLine(e.Gate))
	}
}

// writeStep writes what the table of steps has no column for.
func (p *program) writeStep(b *strings.Builder, s core.StepExecution, shown page) {
	if s.Error != "" {
		fmt.Fprintf(b, "\n%s: %s\n", s.Name, oneLine(s.Error))
	}
	if s.Gate != "" && !strings.Contains(s.Error, s.Gate) {
		fmt.Fprintf(b, "\n%s: expect: %s\n", s.Name, oneLine(s.Gate))
	}
	if child := childOf(s); child != 0 {
		fmt.Fprintf(b, "\n%s: execution %d (%v):  %s\n", s.Name, child, s.Out["status"], p.command("show", idText(child)))
	} else if len(s.Out) > 0 {
		fmt.Fprintf(b, "\n%s: %s\n", s.Name, outText(s.Out))
	}
	if parts, ok := shown.parts[s.ID]; ok {
		b.WriteString("\n" + p.partitionText(parts, shown.exec, shown.all))
	}
}

// childOf is the execution of the job that a step ran; 0: it is no such step.
func childOf(s core.StepExecution) core.JobExecutionID {
	if s.Context == nil {
		return 0
	}
	if _, is := s.Context.Get(childKey); !is {
		return 0
	}
	switch id := s.Out["execution"].(type) {
	case int64:
		return core.JobExecutionID(id)
	case float64:
		return core.JobExecutionID(id)
	}
	return 0
}

// childKey is what a step that runs a job has in its context: its parameters.
const childKey = "surfin.child"

// pageHints are the ways to go on.
func (p *program) pageHints(e core.JobExecution) []string {
	switch e.Status {
	case core.StatusFailed, core.StatusStopped:
		return []string{"restart it:  " + p.restartLine(e, "FILE")}
	case core.StatusUnknown:
		return append([]string{"give it up:  " + p.command("abandon", idText(e.ID))}, p.anewHints(e)...)
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
		return p.runningHints(e.ID, e.Owner)[1:]
	case core.StatusCompleted, core.StatusAbandoned:
	}
	return nil
}

func parameterTable(ps core.Parameters) string {
	var rows [][]string
	for _, q := range ps.All() {
		text, err := q.Canonical()
		if err != nil {
			text = fmt.Sprint(q.Value) // cannot be: NewParameters has checked it
		}
		mark := "yes"
		if !q.Identifying {
			mark = "no"
		}
		rows = append(rows, []string{q.Name, string(q.Type), mark, text})
	}
	return renderTable([]column{{title: "parameter"}, {title: "type"}, {title: "identifying"}, {title: "value"}}, rows)
}

// redrivesText names executions, oldest first.
func redrivesText(redrives []core.JobExecution) string {
	var words []string
	for _, e := range slices.Backward(redrives) {
		words = append(words, fmt.Sprintf("execution %d (%s)", e.ID, e.Status))
	}
	return joinWords(words)
}

// skipsLine is how to see what the execution skipped, if it did.
func (p *program) skipsLine(e core.JobExecution, steps []core.StepExecution) string {
	for _, s := range steps {
		if s.JobExecutionID == e.ID && s.Counters.Skips() > 0 {
			return "\nskipped items:  " + p.command("skips", "list", idText(e.ID)) + "\n"
		}
	}
	return ""
}

// outText writes the named results of a tasklet, sorted by name.
func outText(out map[string]any) string {
	var words []string
	for _, name := range sortedKeys(out) {
		words = append(words, fmt.Sprintf("%s=%v", name, out[name]))
	}
	return clip(strings.Join(words, " "), 2000)
}
