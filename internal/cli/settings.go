package cli

import (
	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const sharedSettings = `Some settings are in the database, and shared by all processes: "settings list" and
"settings set" show and change them. The leader of the workers reads them while it runs.`

func (c taskCommands) settingsCommand() *cobra.Command {
	cmd := fileCommands(c).settingsTopic()
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	list := &cobra.Command{
		Use: "list", Short: "List the settings that are kept in the database", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				all, err := s.Settings(cmd.Context())
				if err != nil {
					return err
				}
				return c.printSettings(all)
			})
		},
	}
	c.env.addListFormatFlag(list)
	set := &cobra.Command{
		Use: "set NAME VALUE", Short: "Change a setting that is kept in the database", Args: cobra.ExactArgs(2),
		Example: "  " + c.env.app.Name + " settings set log_retention_days_db 14",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				acted, err := s.Set(cmd.Context(), args[0], args[1], runtime.By{})
				return c.printActed(args[0]+": "+args[1], acted, err)
			})
		},
	}
	c.env.addFormatFlag(set)
	cmd.AddCommand(list, set)
	return cmd
}

func (c taskCommands) printSettings(all []taskports.Setting) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(all)
	}
	var rows [][]string
	for _, s := range all {
		by, at := "(default)", ""
		if !s.Default {
			by = wording.Actor(s.UpdatedBy)
		}
		if s.UpdatedAt != nil {
			at = humanize.Time(*s.UpdatedAt)
		}
		rows = append(rows, []string{s.Name, s.Value, s.Unit, by, at, s.Effect})
	}
	return c.printTable([]column{{title: "setting"}, {title: "value", right: true}, {title: "unit"}, {title: "by"}, {title: "at"}, {title: "effect"}}, rows)
}

const settingsName = "settings"

func (c fileCommands) settingsTopic() *cobra.Command {
	topic := &cobra.Command{
		Use:   settingsName,
		Short: "Settings: surfin.yaml, environment variables and flags",
	}
	topic.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd == topic {
			cmd.Long = settingsText() // only now: the layout takes longer than most commands
		}
		cmd.Root().HelpFunc()(cmd, args)
	})
	return topic
}

func settingsText() string {
	rows := [][]string{}
	for _, r := range settings.Reference() {
		rows = append(rows, r[:])
	}
	return settingsOrder() + "\n\n" + sharedSettings + "\n\n" + renderTable([]column{{title: settings.FileName}, {title: "variable"}, {title: "default"}, {title: "meaning"}}, rows)
}

func settingsOrder() string {
	return `Flags win over environment variables, which win over ` + settings.FileName + ` of the
working directory (or --config FILE), which wins over the defaults. None is
needed. A relative sqlite path in ` + settings.FileName + ` is relative to that file.`
}
