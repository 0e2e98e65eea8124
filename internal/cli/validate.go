package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type fileCommands struct{ env *environment }

func (c fileCommands) validateCommand() *cobra.Command {
	var expand bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check job files without running anything",
		Long: `Checks job files as run does at its start: keys, types, expressions, whether readers,
processors and writers fit together, and whether steps of tasks have handlers. Every
mistake is reported with its position. No database is opened. If the engine reaches
other programs, a missing handler is a note, since their workers may have it.

--expand prints the jobs after include and templates are applied: equivalent job files,
for the folder of the original. Several jobs are documents of one output.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which job files?"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeJobFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return c.validate(args, expand) },
	}
	cmd.Flags().BoolVar(&expand, "expand", false, "print the jobs after include and templates are applied")
	return cmd
}

func (c fileCommands) validate(paths []string, expand bool) error {
	var wrong []error
	if check := c.env.app.CheckNeeds; check != nil {
		if err := check(); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, path := range paths {
		file, err := c.env.loadJobFile(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if err := file.CheckMySQL(c.isMySQL); err != nil {
			wrong = append(wrong, usage(err))
			continue
		}
		text := fmt.Sprintf("%s: ok (job %s: %s)\n", path, file.Name(), humanize.Join(file.Steps()))
		notes, err := c.checkHandlers(file)
		if err != nil {
			wrong = append(wrong, usage(err))
			continue
		}
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
		if _, err := io.WriteString(c.env.err, notes); err != nil {
			return fmt.Errorf("print the notes: %w", err)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &exitError{code: ExitUsage, err: errors.Join(wrong...)}
}

// Without settings that can be read, it is not known.
func (c fileCommands) isMySQL(database string) bool {
	s, err := c.env.loadSettings()
	return err == nil && strings.HasPrefix(s.Databases[cmp.Or(database, tx.Default)].URL, "mysql:")
}

func (c fileCommands) checkHandlers(file *jobfile.File) (notes string, err error) {
	if c.env.app.Handlers == nil || !file.HasTasks() {
		return "", nil
	}
	s, err := c.env.loadSettings()
	if err != nil {
		return "", err
	}
	types, err := c.env.app.Handlers(s)
	if err != nil {
		return "", err
	}
	elsewhere, err := file.CheckHandlers(types)
	for _, p := range elsewhere {
		notes += fmt.Sprintf("note: %v\n      With the engine %s a worker of another program may have it: that is not known without a database.\n", p, s.Engine.Name)
	}
	return notes, err
}
