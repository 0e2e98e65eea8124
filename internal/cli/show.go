package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type showCommands struct{ env *environment }

type showFlags struct {
	definition, partitions, audit, series bool
	file, step                            string
}

func (c showCommands) showCommand() *cobra.Command {
	var o showFlags
	cmd := &cobra.Command{
		Use:               "show EXECUTION",
		Short:             "Show an execution: parameters, steps, gates, decisions, errors, next commands",
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
			if o.step != "" && !o.series {
				return usagef("--step is for --series")
			}
			if o.series {
				return showSeries(cmd.Context(), c.env, operator.SeriesRequest{Execution: id, Step: o.step})
			}
			return c.show(cmd.Context(), o.file, operator.ShowRequest{Execution: id, Partitions: o.partitions, Audit: o.audit, Definition: o.definition})
		},
	}
	cmd.Flags().BoolVar(&o.definition, "definition", false, "print the job file, and the files of its child jobs, as they were when the execution began")
	cmd.Flags().StringVar(&o.file, "file", "", "with --definition: print only this file, NAME as in --definition")
	cmd.Flags().BoolVar(&o.partitions, "partitions", false, "show the partitions, up to 1,000 of a step, not only those that failed")
	cmd.Flags().BoolVar(&o.audit, "audit", false, "show every change of status, with its actor")
	cmd.Flags().BoolVar(&o.series, "series", false, "show the speed of each step over time")
	cmd.Flags().StringVar(&o.step, "step", "", "with --series: only this STEP, or STEP:PART")
	cmd.MarkFlagsMutuallyExclusive("definition", "partitions", "series")
	cmd.MarkFlagsMutuallyExclusive("definition", "audit", "series")
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

// A missing execution is a usage error.
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
	if given := operator.Given(e.Params.Parameters); len(given) > 0 {
		b.WriteString("\n" + parameterTable(given))
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
	if len(e.Acts) > 0 {
		b.WriteString("\nacts on its instance:\n" + actTable(e.Acts))
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
	line("redrive of", strings.TrimPrefix(wording.RedriveOf(e.Params.Parameters), "redrive of "))
	if e.Parent != 0 {
		line("child of", "execution "+wording.ID(e.Parent))
	}
	line("redriven by", wording.Redrives(e))
	line("created", humanize.Time(e.CreatedAt))
	line("started", humanize.Time(e.StartedAt))
	line("ended", humanize.Time(e.EndedAt))
	if e.Owner != nil {
		line("owner", wording.Process(e.Owner.PID, e.Owner.Host)+", "+wording.Lease(e.Owner, now))
		if e.StopRequested {
			line("stop", "requested")
		}
	}
	line("parked", c.env.words().Parked(e.Waiting))
	for _, p := range e.Placed {
		line("waits", wording.Placed(p))
	}
	line("error", humanize.OneLine(e.Error))
	if !strings.Contains(e.Error, e.Gate) {
		line("expect", humanize.OneLine(e.Gate))
	}
}

func (c showCommands) writeStep(b *strings.Builder, s operator.StepView, current core.JobExecutionID, allPartitions bool) {
	if s.Error != "" {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, humanize.OneLine(s.Error))
	}
	for _, text := range wording.StepNotes(&s) {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, text)
	}
	if s.Gate != "" && !strings.Contains(s.Error, s.Gate) {
		fmt.Fprintf(b, "\n%s: expect: %s\n", s.Step, humanize.OneLine(s.Gate))
	}
	if s.Child != 0 {
		status := s.Out["status"]
		if s.ChildStatus != "" {
			status = s.ChildStatus
		}
		fmt.Fprintf(b, "\n%s: execution %d (%v):  %s\n", s.Step, s.Child, status, c.env.command("show", wording.ID(s.Child)))
	} else if len(s.Out) > 0 {
		fmt.Fprintf(b, "\n%s: %s\n", s.Step, wording.Out(s.Out))
	}
	if s.Tasks != nil {
		fmt.Fprintf(b, "\n%s: group %d: %s:  %s\n", s.Step, s.Tasks.Group, wording.Tasks(s.Tasks), c.env.command("tasks", "list", "--group", strconv.FormatInt(s.Tasks.Group, 10)))
	}
	if s.Partitions != nil {
		b.WriteString("\n" + c.env.partitionText(s, current, allPartitions))
	}
}

func (c showCommands) pageHints(e *operator.ExecutionView) []string {
	return wording.HintLines(c.env.words().NextHints(e.Execution.Actions))
}

func parameterTable(ps []core.Parameter) string {
	var rows [][]string
	for _, q := range ps {
		mark := "yes"
		if !q.Identifying {
			mark = "no"
		}
		rows = append(rows, []string{q.Name, string(q.Type), mark, q.Text()})
	}
	return renderTable([]column{{title: "parameter"}, {title: "type"}, {title: "identifying"}, {title: "value"}}, rows)
}

func (env *environment) skipsLine(e *operator.ExecutionView) string {
	for _, s := range e.Steps {
		if s.Execution == e.ID && s.Skipped > s.SkippedUndone {
			return "\nskipped items:  " + env.command("skips", "list", wording.ID(e.ID)) + "\n"
		}
	}
	return ""
}
