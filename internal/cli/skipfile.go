package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

func (c skipsCommands) skipsExportCommand() *cobra.Command {
	var req operator.SkipsRequest
	var out string
	cmd := &cobra.Command{
		Use:   "export EXECUTION",
		Short: "Write the remaining skipped items to a file, to edit and redrive them",
		Long: `Writes the skipped items of EXECUTION that were not redriven, one JSON object per
line. "item" is the item as it was read: correct it, delete the lines that should
not be redriven, and pass the file to
  ` + c.env.app.Name + ` skips redrive EXECUTION --from FILE
If an item could not be read, "raw" is its text in the file ("length" bytes from byte
"offset"), and "columns" names its fields: correct the text, and the step's reader reads
it again. If "item" is null and "raw" is missing, the item is not known completely: it was
too long, not valid UTF-8, or has hidden fields. "stored" has the known part; give the item
or the text, or delete the line.`,
		Example:           "  " + c.env.app.Name + " skips export 12 --out skipped.jsonl",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			req.Execution = id
			return c.exportSkips(cmd.Context(), req, out)
		},
	}
	addSkipFlags(cmd, &req)
	cmd.Flags().StringVar(&out, "out", "", "the `FILE` to write, which must not exist (default: standard output)")
	return cmd
}

func (c skipsCommands) exportSkips(ctx context.Context, req operator.SkipsRequest, out string) error {
	n := 0
	err := c.env.view(ctx, req.Execution, func(s *Session) (err error) {
		if out == "" {
			n, err = s.Service.ExportSkips(ctx, req, c.env.out)
			return err
		}
		to := &newFile{path: out}
		n, err = s.Service.ExportSkips(ctx, req, to)
		return errors.Join(err, to.close(err == nil))
	})
	if err != nil {
		return err
	}
	if out != "" || n == 0 {
		c.env.log.InfoContext(ctx, humanize.Plural(n, "skipped item")+" exported")
	}
	return nil
}

type newFile struct {
	path string
	file *os.File
}

func (f *newFile) Write(text []byte) (int, error) {
	if err := f.open(); err != nil {
		return 0, err
	}
	return f.file.Write(text)
}

func (f *newFile) open() (err error) {
	if f.file != nil {
		return nil
	}
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // items may be private
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("--out %s: the file is there already, and may have been edited", f.path)
	case err != nil:
		return usage(fmt.Errorf("--out: %w", err))
	}
	return nil
}

// An export of no items creates an empty one.
func (f *newFile) close(exported bool) error {
	if exported {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

func readSkips(path string) (_ map[int64]operator.Edit, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage(fmt.Errorf("--from: %w", err))
	}
	defer func() { _ = file.Close() }() //nolint:errcheck // it was only read
	items, err := operator.ReadExport(path, file)
	switch {
	case errors.Is(err, operator.ErrEmptyExport):
		return nil, usage(fmt.Errorf("--from %w", err))
	case err != nil:
		return nil, usage(err)
	}
	return items, nil
}
