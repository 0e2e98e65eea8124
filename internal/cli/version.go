package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (c fileCommands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.env.print(versionText(c.env.app))
		},
	}
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
