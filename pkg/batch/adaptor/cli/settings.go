package cli

import (
	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/runtime"
)

// settingsCommand shows and changes the settings that processes share.
func (c taskCommands) settingsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "List and change the settings that are kept in the database",
		Long: `These settings are shared by all processes, and read by the leader of the workers while it
works. The others are in the settings file (see "help config").`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the settings", Args: cobra.NoArgs,
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
		Use: "set NAME VALUE", Short: "Change a setting", Args: cobra.ExactArgs(2),
		Example: "  " + c.env.app.Name + " settings set log_retention_days_db 14",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(s *runtime.TaskService) error { return s.Set(cmd.Context(), args[0], args[1]) })
		},
	}
	cmd.AddCommand(list, set)
	return cmd
}

func (c taskCommands) printSettings(all []task.Setting) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(all)
	}
	var rows [][]string
	for _, s := range all {
		by, at := "(default)", ""
		if !s.Default {
			by = s.UpdatedBy
		}
		if s.UpdatedAt != nil {
			at = timeText(*s.UpdatedAt)
		}
		rows = append(rows, []string{s.Name, s.Value, by, at})
	}
	return c.printTable([]column{{title: "setting"}, {title: "value", right: true}, {title: "by"}, {title: "at"}}, rows)
}
