package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/draft"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// exactly takes n arguments; what says what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage(errors.New(what), "usage:  "+cmd.UseLine())
		}
		return nil
	}
}

func addRowsFlag(cmd *cobra.Command, rows *int) {
	cmd.Flags().IntVar(rows, "rows", draft.DefaultRows, "look at the first `N` rows")
}

func (c fileCommands) infer(ctx context.Context, path string, rows int) (*draft.Shape, error) {
	if rows < 1 {
		return nil, usagef("--rows %d: at least 1", rows)
	}
	shape, err := draft.Infer(ctx, path, rows)
	if err != nil {
		return nil, usage(err)
	}
	return shape, nil
}

func (c fileCommands) inferCommand() *cobra.Command {
	var rows int
	cmd := &cobra.Command{
		Use:   "infer FILE",
		Short: "Say which fields and types a csv, json or jsonl file has",
		Long: `Reads the beginning of a file and prints its fields as an item type of a job file. A
comment says what a person should look at: values that do not fit, nulls, lengths, dates
that may be read in two ways. A type is one that at least 95 of 100 values have.`,
		Example: "  " + c.env.app.Name + " infer orders.csv",
		Args:    exactly(1, "which file?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shape, err := c.infer(cmd.Context(), args[0], rows)
			if err != nil {
				return err
			}
			if c.env.format == formatJSON {
				return c.env.printJSON(shape)
			}
			text := "# " + shape.Summary() + "\nitem:\n" + shape.Item("  ")
			for _, list := range shape.Lists {
				text += "# " + list + " is an array of objects: explode: " + list + " makes an item of each\n"
			}
			return c.env.print(text)
		},
	}
	addRowsFlag(cmd, &rows)
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c fileCommands) initCommand() *cobra.Command {
	var rows int
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a job that loads a csv, json or jsonl file, with its migration and a test",
		Long: `Looks at a file as infer does, and writes a job that loads it into a table, the
migration that makes the table, and a test. All of them run at once. A file that is there
is replaced only with --force.

"init app NAME" writes a Go program instead, with components of its own.`,
		Example: "  " + c.env.app.Name + " init orders.csv\n  " + c.env.app.Name + " test orders_test.yaml\n  " + c.env.app.Name + " run orders.yaml",
		Args:    exactly(1, "which file?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shape, err := c.infer(cmd.Context(), args[0], rows)
			if err != nil {
				return err
			}
			return c.start(shape, dir, force)
		},
	}
	addRowsFlag(cmd, &rows)
	cmd.Flags().StringVar(&dir, "dir", ".", "the `FOLDER` of the job")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there")
	cmd.AddCommand(c.initAppCommand())
	return cmd
}

// start writes the files of a draft.
func (c fileCommands) start(shape *draft.Shape, dir string, force bool) error {
	input, err := relativeTo(dir, shape.Path)
	if err != nil {
		return usage(err)
	}
	files := shape.Start(input)
	text, err := writeDraft(files, dir, force)
	if err != nil {
		return err
	}
	job := filepath.Join(dir, files[0].Path)
	text += "\ntest it:  " + c.env.app.Name + " test " + strings.TrimSuffix(job, ".yaml") + "_test.yaml\nrun it:   " + c.env.app.Name + " run " + job + "\n"
	return c.env.print(text)
}

// writeDraft writes files into a folder: all, or none where one is there already. It returns
// their paths, a line each.
func writeDraft(files []draft.File, dir string, force bool) (paths string, err error) {
	var there []error
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path))); err == nil && !force {
			there = append(there, fmt.Errorf("%s is there already", filepath.Join(dir, f.Path)))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			there = append(there, err)
		}
	}
	if len(there) > 0 {
		return "", usage(errors.Join(there...), "replace them:  --force", "write elsewhere:  --dir FOLDER")
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a project's folder
			return "", usage(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil { //nolint:gosec // a project's file
			return "", usage(err)
		}
		paths += path + "\n"
	}
	return paths, nil
}

// relativeTo is the path of a file from a folder, with slashes.
func relativeTo(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

func (c fileCommands) copyCommand() *cobra.Command {
	var rows int
	var only bool
	cmd := &cobra.Command{
		Use:   "copy FILE TO",
		Short: "Copy a csv, json or jsonl file to a table or to a file of another format",
		Long: `Makes a job of what infer says of FILE, and runs it. TO is a file (.csv, .json, .jsonl),
or a table: DATABASE_URL#TABLE, which is made where it is absent. Rows that do not fit are
skipped and counted; the history is kept in the database of the table. With --print the job
is printed and nothing is run.`,
		Example: "  " + c.env.app.Name + " copy orders.csv sqlite:shop.db#orders\n  " + c.env.app.Name + " copy orders.json orders.csv --print",
		Args:    exactly(2, "copy what, and where to?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shape, err := c.infer(cmd.Context(), args[0], rows)
			if err != nil {
				return err
			}
			return c.copy(cmd.Context(), shape, args[1], only)
		},
	}
	addRowsFlag(cmd, &rows)
	cmd.Flags().BoolVar(&only, "print", false, "print the job and run nothing")
	return cmd
}

func (c fileCommands) copy(ctx context.Context, shape *draft.Shape, to string, only bool) (err error) {
	url, table, isTable := strings.Cut(to, "#")
	file := ""
	if !isTable {
		file = to
		if _, err := os.Stat(to); err == nil && !only {
			return usagef("%s is there already: remove it, or name another file", to)
		}
	}
	if !only { // the job is in a folder of its own
		if shape.Path, err = filepath.Abs(shape.Path); err != nil {
			return usage(err)
		}
		if file != "" {
			if file, err = filepath.Abs(file); err != nil {
				return usage(err)
			}
		}
	}
	text, err := shape.Copy(table, file)
	if err != nil {
		return usage(err)
	}
	if only {
		return c.env.print(text)
	}
	folder, err := os.MkdirTemp("", "surfin-copy-")
	if err != nil {
		return fmt.Errorf("make a folder for the job: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if file != "" {
		url = "sqlite:" + filepath.Join(folder, "history.db")
	}
	c.env.flags = append(c.env.flags, settings.Flag{Name: "TO", Key: "databases.default.url", Value: url})
	if err := c.env.configure(); err != nil {
		return err
	}
	job := filepath.Join(folder, "copy.yaml")
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		return usage(err)
	}
	var exec *operator.Execution
	err = c.env.withSession(ctx, core.Observers(), func(s *Session) error {
		exec, err = s.Service.Run(ctx, operator.RunRequest{File: job, Folder: c.env.dir, Again: true})
		if err != nil {
			return c.env.refusal(err)
		}
		view, err := s.Service.Show(ctx, operator.ShowRequest{Execution: exec.ID})
		if err != nil {
			return err
		}
		return c.env.print(copyText(view))
	})
	if err == nil && exec.Status != core.StatusCompleted {
		err = &exitError{code: ExitFailed, err: errors.New(exec.Error)}
	}
	return err
}

func copyText(view *operator.ExecutionView) string {
	text := ""
	for _, s := range view.Steps {
		text += fmt.Sprintf("%s: %d rows written, %d skipped\n", s.Status, s.Written, s.Skipped)
	}
	return text
}
