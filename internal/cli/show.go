package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type showFlags struct {
	definition, partitions, audit bool
	file                          string
}

func (c showCommands) showCommand() *cobra.Command {
	var o showFlags
	cmd := &cobra.Command{
		Use:               "show EXECUTION",
		Short:             "Show an execution: parameters, steps, gates, decisions, errors, and how to go on",
		Example:           "  " + c.env.app.Name + " show 12",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			if o.file != "" && !o.definition {
				return usagef("--file is for --definition")
			}
			return c.show(cmd.Context(), o.file, operator.ShowRequest{Execution: id, Partitions: o.partitions, Audit: o.audit, Definition: o.definition})
		},
	}
	cmd.Flags().BoolVar(&o.definition, "definition", false, "print the job file, and the files of its child jobs, as they were when the execution began")
	cmd.Flags().StringVar(&o.file, "file", "", "with --definition: print only this file, NAME as in --definition")
	cmd.Flags().BoolVar(&o.partitions, "partitions", false, "show every partition, not only those that failed")
	cmd.Flags().BoolVar(&o.audit, "audit", false, "show every change of a status, and who asked for it")
	cmd.MarkFlagsMutuallyExclusive("definition", "partitions")
	cmd.MarkFlagsMutuallyExclusive("definition", "audit")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c showCommands) show(ctx context.Context, file string, req operator.ShowRequest) error {
	var shown *operator.ExecutionView
	err := c.env.view(ctx, req.Execution, func(s *Session) (err error) {
		shown, err = s.Service.Show(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return err
	case req.Definition:
		text, err := definitionText(shown.Definition, file)
		if err != nil {
			return err
		}
		return c.env.print(text)
	case c.env.format == formatJSON:
		return c.env.printJSON(c.env.pageRecord(shown))
	}
	return c.env.print(c.executionPage(shown, req.Partitions))
}

// definitionText returns the one file, unchanged, or all files: YAML documents, each after a line
// with its name.
func definitionText(files []core.DefinitionFile, name string) (string, error) {
	if name == "" && len(files) == 1 {
		return files[0].Text, nil
	}
	var b strings.Builder
	var names []string
	for _, f := range files {
		if f.Name == name {
			return f.Text, nil
		}
		names = append(names, f.Name)
		fmt.Fprintf(&b, "--- # %s\n%s", f.Name, f.Text)
		if !strings.HasSuffix(f.Text, "\n") {
			b.WriteString("\n")
		}
	}
	if name != "" {
		return "", usagef("--file %s: the definition has no such file; it has %s", name, strings.Join(names, ", "))
	}
	return b.String(), nil
}

// view queries the service for an execution; a missing one is a usage error.
func (env *environment) view(ctx context.Context, id core.JobExecutionID, ask func(s *Session) error) error {
	if err := env.configure(); err != nil {
		return err
	}
	if env.isAbsent(env.settings.Repository.Database) {
		return env.notFound(core.ErrNotFound, id)
	}
	return env.withSession(ctx, env.observer(), func(s *Session) error { return env.notFound(ask(s), id) })
}

func (c showCommands) executionPage(e *operator.ExecutionView, allPartitions bool) string {
	var b strings.Builder
	b.WriteString(headline(e.Execution) + "\n\n")
	c.writeFacts(&b, e, c.env.now())
	if e.Params.Len() > 0 {
		b.WriteString("\n" + parameterTable(e.Params.Parameters))
	}
	if len(e.Steps) > 0 {
		b.WriteString("\n" + stepTable(e.Steps, e.ID))
	}
	for _, s := range e.Steps {
		c.writeStep(&b, s, e.ID, allPartitions)
	}
	if len(e.Decisions) > 0 {
		b.WriteString("\n" + decisionTable(e.Decisions))
	}
	if len(e.Audit) > 0 {
		b.WriteString("\n" + auditTable(e.Audit))
	}
	b.WriteString(c.env.skipsLine(e))
	if hints := c.pageHints(e); len(hints) > 0 {
		b.WriteString("\n" + strings.Join(hints, "\n") + "\n")
	}
	return b.String()
}

func (c showCommands) writeFacts(b *strings.Builder, e *operator.ExecutionView, now time.Time) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "%-12s%s\n", name, text)
		}
	}
	line("instance", fmt.Sprint(e.InstanceID))
	line("file", e.File)
	if e.RedriveOf != 0 {
		line("redrive of", "execution "+idText(e.RedriveOf))
	}
	if e.Parent != 0 {
		line("child of", "execution "+idText(e.Parent))
	}
	line("redriven by", redrivesText(e.Redrives))
	line("created", timeText(e.CreatedAt))
	line("started", timeText(e.StartedAt))
	line("ended", timeText(e.EndedAt))
	if e.Owner != nil {
		line("owner", fmt.Sprintf("process %d on %s, %s", e.Owner.PID, e.Owner.Host, leaseText(e.Owner, now)))
		if e.StopRequested {
			line("stop", "requested")
		}
	}
	line("parked", c.parkedText(e.Waiting))
	for _, p := range e.Placed {
		line("waits", placedText(p))
	}
	line("error", oneLine(e.Error))
	if !strings.Contains(e.Error, e.Gate) {
		line("expect", oneLine(e.Gate))
	}
}

func placedText(p operator.PlacedWork) string {
	names := strings.Join(p.Names, ", ")
	if more := p.Count - len(p.Names); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s (on %s): %s", names, p.On, p.Waits)
}

// parkedText describes the open work of a parked execution, and whether no worker does it.
func (c showCommands) parkedText(w *operator.Waiting) string {
	if w == nil {
		return ""
	}
	text := "it waits for a worker that continues it"
	if open := w.String(); open != "" {
		text = "it waits for " + open
	}
	if lacks := c.env.noWorkerText(w); lacks != "" {
		text += "; " + lacks
	}
	return text
}

// leaseText describes how long the lease of an execution lasts; for an expired one, why it is not
// taken over.
func leaseText(o *operator.Owner, now time.Time) string {
	until, over := timeText(o.LeaseUntil), now.Sub(o.LeaseUntil)
	const byItself = "; no process takes it over by itself"
	switch {
	case o.Dead:
		return "which is gone" + byItself
	case over > 0 && o.Lost:
		return "lease ended " + durationText(over) + " ago" + byItself
	case over > 0:
		return "lease until " + until + " by the clock of the database, behind that of this machine"
	case o.Lost:
		return "lease over by the clock of the database" + byItself
	}
	return "lease until " + until
}

func (c showCommands) writeStep(b *strings.Builder, s operator.StepView, current core.JobExecutionID, allPartitions bool) {
	if s.Error != "" {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, oneLine(s.Error))
	}
	for _, text := range s.Warnings {
		fmt.Fprintf(b, "\n%s: warning: %s\n", s.Step, text)
	}
	if s.NewDefinition {
		fmt.Fprintf(b, "\n%s: took its new definition, as nothing was committed by the old one\n", s.Step)
	}
	if s.Gate != "" && !strings.Contains(s.Error, s.Gate) {
		fmt.Fprintf(b, "\n%s: expect: %s\n", s.Step, oneLine(s.Gate))
	}
	if s.Child != 0 {
		status := s.Out["status"]
		if s.ChildStatus != "" {
			status = s.ChildStatus
		}
		fmt.Fprintf(b, "\n%s: execution %d (%v):  %s\n", s.Step, s.Child, status, c.env.command("show", idText(s.Child)))
	} else if len(s.Out) > 0 {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, outText(s.Out))
	}
	if s.Tasks != nil {
		fmt.Fprintf(b, "\n%s: group %d: %s:  %s\n", s.Step, s.Tasks.Group, tasksText(s.Tasks), c.env.command("tasks", "list", "--group", strconv.FormatInt(s.Tasks.Group, 10)))
	}
	if s.Partitions != nil {
		b.WriteString("\n" + c.env.partitionText(s, current, allPartitions))
	}
}

// tasksText counts the tasks of a step: "4 tasks: 1 RUNNING, 3 SUCCEEDED".
func tasksText(t *operator.StepTasks) string {
	var words []string
	all := 0
	for _, state := range sortedKeys(t.States) {
		all += t.States[state]
		words = append(words, count(int64(t.States[state]))+" "+state)
	}
	return plural(all, "task") + ": " + joinWords(words)
}

func (c showCommands) pageHints(e *operator.ExecutionView) []string {
	return hintLines(c.env.restartHints(e.Execution))
}

func parameterTable(ps core.Parameters) string {
	var rows [][]string
	for _, q := range ps.All() {
		mark := "yes"
		if !q.Identifying {
			mark = "no"
		}
		rows = append(rows, []string{q.Name, string(q.Type), mark, q.Text()})
	}
	return renderTable([]column{{title: "parameter"}, {title: "type"}, {title: "identifying"}, {title: "value"}}, rows)
}

func redrivesText(redrives []operator.Redrive) string {
	var words []string
	for _, e := range slices.Backward(redrives) {
		words = append(words, fmt.Sprintf("execution %d (%s)", e.Execution, e.Status))
	}
	return joinWords(words)
}

func (env *environment) skipsLine(e *operator.ExecutionView) string {
	for _, s := range e.Steps {
		if s.Execution == e.ID && s.Skipped > s.SkippedUndone {
			return "\nskipped items:  " + env.command("skips", "list", idText(e.ID)) + "\n"
		}
	}
	return ""
}

func outText(out map[string]any) string {
	var words []string
	for _, name := range sortedKeys(out) {
		words = append(words, fmt.Sprintf("%s=%v", name, out[name]))
	}
	return clip(strings.Join(words, " "), 2000)
}
