package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/console"
)

func (c fileCommands) versionCommand() *cobra.Command {
	var licenses bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !licenses {
				return c.env.print(versionText(c.env.app))
			}
			text, err := console.Licenses()
			if err != nil {
				return err
			}
			return c.env.print(text)
		},
	}
	cmd.Flags().BoolVar(&licenses, "licenses", false, "print the licenses of the files in the console that others wrote")
	return cmd
}

func versionText(app App) string {
	version := app.Version
	if version == "" {
		version = "(unknown version)"
	}
	return fmt.Sprintf("%s %s (%s, %s/%s%s)\n", app.Name, version, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision())
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = ", " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}
