package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (c fileCommands) validateCommand() *cobra.Command {
	var expand bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check job files without running anything",
		Long: `Checks job files as run does before anything runs: keys, types, expressions, and
whether readers, processors and writers fit together. Everything wrong is
reported, with its place. No database is opened.

With --expand the jobs are printed as they are after include and templates: job files
that mean the same, in the folder of the job file. Several are documents of one output.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which job files?"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeJobFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return c.validate(args, expand) },
	}
	cmd.Flags().BoolVar(&expand, "expand", false, "print the jobs as they are after include and templates")
	return cmd
}

// validate continues after a file with problems: all of them are reported.
func (c fileCommands) validate(paths []string, expand bool) error {
	var wrong []error
	for _, path := range paths {
		file, err := c.env.loadJobFile(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		text := fmt.Sprintf("%s: ok (job %s: %s)\n", path, file.Name(), joinWords(file.Steps()))
		if expand {
			expanded, err := file.Expanded()
			if err != nil {
				return err
			}
			text = string(expanded)
			if len(paths) > 1 {
				text = "---\n" + text
			}
		}
		if err := c.env.print(text); err != nil {
			return err
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &exitError{code: ExitUsage, err: errors.Join(wrong...)}
}
