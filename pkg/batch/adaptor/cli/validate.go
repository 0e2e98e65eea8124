package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (c fileCommands) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check job files without running anything",
		Long: `Checks job files as run does before anything runs: keys, types, expressions, and
whether readers, processors and writers fit together. Everything wrong is
reported, with its place. No database is opened.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which job files?"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeJobFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return c.validate(args) },
	}
}

// validate continues after a file with problems: all of them are reported.
func (c fileCommands) validate(paths []string) error {
	var wrong []error
	for _, path := range paths {
		file, err := c.env.loadJobFile(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		text := fmt.Sprintf("%s: ok (job %s: %s)\n", path, file.Name(), joinWords(file.Steps()))
		if err := c.env.print(text); err != nil {
			return err
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &exitError{code: ExitUsage, err: errors.Join(wrong...)}
}
