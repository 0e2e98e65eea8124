package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/wording"
)

type definitionsCommands struct{ env *environment }

func (c definitionsCommands) registerCommand() *cobra.Command {
	var prune bool
	cmd := &cobra.Command{
		Use:   "register FILE|FOLDER ...",
		Short: "Register job files with the servers that share the history",
		Long: `Checks job files and stores them, with the files that they name, in the history's
database. A server ("serve") starts them by the names of their jobs, and a worker ("worker",
"serve --worker") at the times of their schedules; neither reads a file. A new version
replaces the previous one for executions that start later. A new name is enabled.

A FOLDER stands for its files *.yaml and *.yml, without subfolders. If one file is wrong,
nothing is registered. --prune also unregisters jobs whose registered file was in one of
the folders and no longer exists.`,
		Example: "  " + c.env.app.Name + " register nightly.yaml\n  " + c.env.app.Name + " register jobs/ --prune",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which job files? at least one file or folder is expected"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeJobFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.register(cmd.Context(), args, prune)
		},
	}
	cmd.Flags().BoolVar(&prune, "prune", false, "unregister jobs of the folders whose files are gone")
	c.env.addFormatFlag(cmd)
	return cmd
}

type registration struct {
	Registered   []*operator.Registered `json:"registered"`
	Unregistered []string               `json:"unregistered"`
}

func (c definitionsCommands) register(ctx context.Context, paths []string, prune bool) error {
	files, folders, err := c.filesOf(paths)
	if err != nil {
		return err
	}
	if prune && len(folders) == 0 {
		return usagef("--prune: it is for folders, and none is named")
	}
	if err := c.env.configure(); err != nil {
		return err
	}
	done := registration{Registered: []*operator.Registered{}, Unregistered: []string{}}
	err = c.env.withSession(ctx, c.env.observer(), func(s *Session) error {
		for _, file := range files {
			made, err := s.Service.Register(ctx, operator.RegisterRequest{Checked: file})
			if err != nil {
				return c.env.refusal(err)
			}
			done.Registered = append(done.Registered, made)
		}
		if slices.ContainsFunc(done.Registered, func(made *operator.Registered) bool { return made.Schedule != nil && made.Enabled }) {
			c.warnIfNothingLeads(ctx, s)
		}
		if !prune {
			return nil
		}
		done.Unregistered, err = pruned(ctx, s.Service, done.Registered, folders)
		return c.env.refusal(err)
	})
	if c.env.format == formatJSON {
		if err == nil && len(paths) == 1 && len(folders) == 0 {
			return c.env.printJSON(done.Registered[0])
		}
		return errors.Join(err, c.env.printJSON(done))
	}
	text := ""
	for _, made := range done.Registered {
		text += registeredText(made)
	}
	for _, name := range done.Unregistered {
		text += "Job " + name + " is not registered any more: its file is gone.\n"
	}
	return errors.Join(err, c.env.print(text)) // jobs registered before a failure stay
}

func (c definitionsCommands) filesOf(paths []string) (files []*jobfile.File, folders []string, err error) {
	var errs []error
	byJob := map[string]string{}
	for _, path := range paths {
		list := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() && c.env.app.Files[path] == nil {
			if list, err = catalog.Files(path); err != nil {
				errs = append(errs, usage(err))
				continue
			}
			folders = append(folders, filepath.Dir(list[0]))
		}
		for _, one := range list {
			file, err := c.env.loadJobFile(one)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if other, twice := byJob[file.Name()]; twice {
				errs = append(errs, usagef("%s and %s both have job %s", other, one, file.Name()))
			}
			byJob[file.Name()] = one
			files = append(files, file)
		}
	}
	return files, folders, errors.Join(errs...)
}

func pruned(ctx context.Context, s *operator.Service, now []*operator.Registered, folders []string) ([]string, error) {
	list, err := s.Definitions(ctx)
	gone := []string{}
	for _, d := range list {
		kept := slices.ContainsFunc(now, func(made *operator.Registered) bool { return made.Job == d.Job })
		if err != nil || kept || d.File == "" || !slices.Contains(folders, filepath.Dir(d.File)) {
			continue
		}
		if err = s.Unregister(ctx, d.Job); err == nil {
			gone = append(gone, d.Job)
		}
	}
	return gone, err
}

func (c definitionsCommands) unregisterCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unregister JOB ...",
		Short: "Unregister jobs; their history stays",
		Long: `The job's schedule ends, and servers no longer start it by its name. Running executions
continue; tasks that wait to run the job fail. "register" adds it again, enabled.`,
		Example: "  " + c.env.app.Name + " unregister nightly",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which jobs? at least one name is expected"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.env.configure(); err != nil {
				return err
			}
			ctx := cmd.Context()
			return c.env.withSession(ctx, c.env.observer(), func(s *Session) error {
				var errs []error
				for _, name := range args {
					if err := s.Service.Unregister(ctx, name); err != nil {
						errs = append(errs, c.env.refusal(err))
						continue
					}
					errs = append(errs, c.env.print("Job "+name+" is not registered any more.\n"))
				}
				return errors.Join(errs...)
			})
		},
	}
}

func (c definitionsCommands) warnIfNothingLeads(ctx context.Context, s *Session) {
	if noWorker(ctx, s) {
		c.env.log.WarnContext(ctx, "no worker is alive: nothing starts registered jobs that are due", "start one", c.env.app.Name+" worker", "or", c.env.app.Name+" serve --worker")
	}
}

func registeredText(made *operator.Registered) string {
	text := "Job " + made.Job
	switch {
	case !made.Changed:
		text += " is registered as it is (version " + shortVersion(made.Version) + ")."
	case made.Before == "" || made.Before == made.Version:
		text += " is registered (version " + shortVersion(made.Version) + ")."
	default:
		text += fmt.Sprintf(" is registered (version %s, before %s).", shortVersion(made.Version), shortVersion(made.Before))
	}
	switch {
	case made.Schedule == nil:
		text += "\n  it has no schedule: it is started by its name"
	case !made.Enabled:
		text += "\n  its schedule is disabled"
	default:
		text += "\n  due " + scheduleText(made.DefinitionView)
	}
	return text + "\n"
}

func shortVersion(hash string) string { return hash[:min(len(hash), 12)] }

func scheduleText(d operator.DefinitionView) string {
	switch {
	case d.Error != "":
		return humanize.Clip(humanize.OneLine(d.Error), 80)
	case d.Schedule == nil:
		return "-"
	}
	return cronText(*d.Schedule) + " " + d.Schedule.Timezone
}

func calendarName(s taskports.Schedule) string {
	if s.Calendar == nil {
		return ""
	}
	return s.Calendar.Name
}

func cronText(s taskports.Schedule) string {
	if s.Calendar == nil {
		return s.Cron
	}
	return fmt.Sprintf("%s (%s, %s)", s.Cron, s.Calendar.Name, s.WhenClosed)
}

func (c definitionsCommands) definitionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "definitions",
		Short: "List, enable, disable and run registered jobs",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context()) },
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List registered jobs, by name",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context()) },
	}
	c.env.addListFormatFlag(cmd)
	c.env.addListFormatFlag(list)
	cmd.AddCommand(list,
		c.switchCommand("enable", "Follow the schedule of registered jobs from now on",
			"Runs that were due while the schedule was disabled are not caught up.",
			func(ctx context.Context, s *operator.Service, name string) (*operator.DefinitionView, error) {
				return s.Enable(ctx, name)
			}),
		c.switchCommand("disable", "Ignore the schedule of registered jobs",
			"Running and submitted executions continue. The job can still be started by name.",
			func(ctx context.Context, s *operator.Service, name string) (*operator.DefinitionView, error) {
				return s.Disable(ctx, name)
			}),
		c.timeRunCommand())
	return cmd
}

func (c definitionsCommands) switchCommand(use, short, long string,
	act func(ctx context.Context, s *operator.Service, name string) (*operator.DefinitionView, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " JOB...", Short: short, Long: long,
		Example: "  " + c.env.app.Name + " definitions " + use + " nightly",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which jobs?"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.switchAll(cmd.Context(), args, act)
		},
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c definitionsCommands) switchAll(ctx context.Context, names []string,
	act func(ctx context.Context, s *operator.Service, name string) (*operator.DefinitionView, error),
) error {
	views := []operator.DefinitionView{}
	var wrong []error
	if err := c.env.configure(); err != nil {
		return err
	}
	err := c.env.withSession(ctx, c.env.observer(), func(s *Session) error {
		for _, name := range names {
			view, err := act(ctx, s.Service, name)
			if errors.Is(err, ports.ErrNoSuchJob) {
				err = c.notRegistered(ctx, s, name)
			}
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			views = append(views, *view)
		}
		return nil
	})
	if err == nil && len(views) > 0 {
		err = c.print(views)
	}
	return errors.Join(append(wrong, err)...)
}

func (c definitionsCommands) notRegistered(ctx context.Context, s *Session, name string) error {
	list, err := s.Service.Definitions(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, d := range list {
		names = append(names, d.Job)
	}
	return usage(fmt.Errorf("job %s is not registered%s", name, nearest.Hint(name, names)), "register it:  "+c.env.command("register", "FILE"))
}

func (c definitionsCommands) list(ctx context.Context) error {
	views := []operator.DefinitionView{}
	err := c.env.read(ctx, func(s *Session) (err error) {
		views, err = s.Service.Definitions(ctx)
		return err
	})
	if err != nil && len(views) == 0 {
		return err
	}
	return errors.Join(c.print(views), err)
}

func (c definitionsCommands) print(views []operator.DefinitionView) error {
	var rows [][]string
	for _, d := range views {
		state := "enabled"
		if !d.Enabled {
			state = "disabled"
		}
		rows = append(rows, []string{d.Job, shortVersion(d.Version), state, scheduleText(d), humanize.Time(d.Updated), wording.Actor(d.By)})
	}
	switch c.env.format {
	case formatJSON:
		return c.env.printJSON(views)
	case formatCSV:
		for i, d := range views {
			rows[i][1], rows[i][4] = d.Version, csvTime(d.Updated)
		}
		return c.env.printCSV([]string{"job", "version", "state", "schedule", "updated", "by"}, rows)
	}
	if len(rows) == 0 {
		c.env.log.Info("no job is registered in " + c.env.databaseText(c.env.settings.Repository.Database))
		return nil
	}
	return c.env.print(renderTable([]column{{title: "job"}, {title: "version"}, {title: "state"}, {title: "schedule"}, {title: "updated"}, {title: "by"}}, rows))
}
