package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/jobfile/docs"
)

func (c fileCommands) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "describe NAME",
		Short:   "Show the reference page of a component: configuration, types, example",
		Example: "  " + c.env.app.Name + " describe csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("which component?"), "usage:  "+cmd.UseLine(), "names:  "+c.env.app.Name+" list components")
			}
			return nil
		},
		ValidArgsFunction: c.completeComponents,
		RunE: func(_ *cobra.Command, args []string) error {
			page, err := docs.Describe(c.env.app.Registry, args[0])
			if err != nil {
				return usage(err, "names:  "+c.env.app.Name+" list components")
			}
			return c.env.print(withoutComments(string(page)))
		},
	}
}

func withoutComments(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "<!--") {
			b.WriteString(line)
		}
	}
	return strings.TrimLeft(b.String(), "\n")
}

func (c fileCommands) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of job files, for editors",
		Long: `Prints the JSON Schema of job files with this application's components. Editors
with the YAML language server complete and check a job file that begins with

  # yaml-language-server: $schema=surfin.schema.json`,
		Example: "  " + c.env.app.Name + " schema > surfin.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := docs.Schema(c.env.app.Registry)
			if err != nil {
				return err
			}
			return c.env.print(string(schema))
		},
	}
}
