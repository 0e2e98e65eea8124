package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c taskCommands) workersCommand() *cobra.Command {
	var held bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List the current and former workers, and the one that leads",
		Long: `Lists the workers, and the worker that leads: it starts scheduled runs, and assigns work
with a placement. --held lists the tasks, parts and executions that they have, with the
rest of each lease; servers, and commands that run jobs, are listed as well.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return c.workers(cmd.Context(), s, held) })
		},
	}
	cmd.Flags().BoolVar(&held, "held", false, "list the work that each process has")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c taskCommands) workers(ctx context.Context, s *runtime.TaskService, held bool) error {
	work, err := s.Work(ctx)
	if err != nil {
		return err
	}
	for _, t := range work.InVain() {
		c.env.log.WarnContext(ctx, fmt.Sprintf("tasks of type %q wait, and no live worker executes them", t))
	}
	deciders, err := s.WaitingDeciders(ctx)
	if err != nil {
		return err
	}
	for _, d := range deciders {
		c.env.log.WarnContext(ctx, fmt.Sprintf("%d tasks wait for the decider %q, and no live worker has it", d.Tasks, d.Name))
	}
	switch {
	case c.env.format == formatJSON && held:
		return c.env.printJSON(struct {
			Workers   []runtime.WorkerView  `json:"workers"`
			Processes []runtime.ProcessView `json:"processes"`
		}{work.Workers, work.Processes})
	case c.env.format == formatJSON:
		return c.env.printJSON(work.Workers)
	case held:
		return c.printHeld(ctx, work)
	}
	var rows [][]string
	for _, w := range work.Workers {
		rows = append(rows, []string{w.Name, w.State, yesNo(w.Leads), humanize.Count(w.Executing), humanize.Count(w.Held), humanize.Count(w.Capacity), core.LabelsText(w.Labels), strings.Join(w.Types, " "), strings.Join(w.Deciders, " "), yesNo(w.Parts), w.Version, humanize.Time(w.HeartbeatAt)})
	}
	err = c.printTable([]column{
		{title: "worker"}, {title: "state"}, {title: "leads"}, {title: "executing", right: true}, {title: "held", right: true}, {title: "slots", right: true}, {title: "labels"}, {title: "types"}, {title: "deciders"}, {title: "parts"}, {title: "version"}, {title: "heartbeat"},
	}, rows)
	if text := wording.Leader(work.Leader); err == nil && text != "" && c.env.format != formatCSV {
		err = c.env.print("\n" + text + "\n")
	}
	return err
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func (c taskCommands) printHeld(ctx context.Context, work *runtime.WorkView) error {
	var rows [][]string
	add := func(process string, total int, list []taskports.Held) {
		for i := range list {
			h := &list[i]
			execution := ""
			if h.Execution != 0 {
				execution = strconv.FormatInt(int64(h.Execution), 10)
			}
			rows = append(rows, []string{process, string(h.Kind), strconv.FormatInt(h.ID, 10), h.Name, execution, h.State, humanize.Time(h.Since), wording.LeaseLeft(h)})
		}
		if n := total - len(list); n > 0 {
			c.env.log.InfoContext(ctx, fmt.Sprintf("%s has %s more", process, humanize.Count(n)))
		}
	}
	for i := range work.Workers {
		add(work.Workers[i].Name, work.Workers[i].Held, work.Workers[i].Holds)
	}
	for i := range work.Processes {
		add(work.Processes[i].Name, work.Processes[i].Held, work.Processes[i].Holds)
	}
	if work.More {
		c.env.log.InfoContext(ctx, "processes have more work than is listed")
	}
	return c.printTable([]column{{title: "process"}, {title: "kind"}, {title: "number", right: true}, {title: "name"}, {title: "execution", right: true}, {title: "state"}, {title: "since"}, {title: "lease"}}, rows)
}

func (c taskCommands) typesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "types",
		Short: "List the types of tasks, and the work that waits for a placement",
		Long: `Lists the types of tasks that wait, are executed, or that a live worker executes: how many
wait (at most 1,000 are counted) and since when the oldest one does, how many are executed,
and how many lost their worker. Then work that waits to be assigned, with the reason.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return c.types(cmd.Context(), s) })
		},
	}
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c taskCommands) types(ctx context.Context, s *runtime.TaskService) error {
	work, err := s.Work(ctx)
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(struct {
			Types      []runtime.TypeView      `json:"types"`
			Placements []runtime.PlacementView `json:"placements"`
		}{work.Types, work.Placements})
	}
	var rows [][]string
	for _, t := range work.Types {
		rows = append(rows, []string{t.Name, wording.AtMost(t.Waiting, taskports.MostWaiting), humanize.Time(t.Since), humanize.Count(t.Executing), humanize.Count(t.Orphaned), humanize.Count(t.Workers), t.Waits})
	}
	err = c.printTable([]column{{title: "type"}, {title: "waiting", right: true}, {title: "oldest"}, {title: "executing", right: true}, {title: "orphaned", right: true}, {title: "workers", right: true}, {title: "waits for"}}, rows)
	if err != nil || c.env.format == formatCSV || len(work.Placements) == 0 {
		return err
	}
	rows = nil
	for _, p := range work.Placements {
		rows = append(rows, []string{p.On, string(p.Kind), p.Type, wording.AtMost(p.Work, ports.MostPlaced), humanize.Time(p.Since), p.Waits})
	}
	return c.env.print("\n" + renderTable([]column{{title: "on"}, {title: "kind"}, {title: "type"}, {title: "waiting", right: true}, {title: "oldest"}, {title: "waits for"}}, rows))
}
