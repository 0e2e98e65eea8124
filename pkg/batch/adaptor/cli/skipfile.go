package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// exportPage is how many skipped items an export reads at once.
const exportPage = 500

func (p *program) skipsExportCommand() *cobra.Command {
	filter := core.SkipFilter{Left: true, Limit: exportPage}
	var out string
	cmd := &cobra.Command{
		Use:   "export EXECUTION",
		Short: "Write the skipped items that are left to a file, to be edited and redriven",
		Long: `Writes the skipped items of EXECUTION that were not redriven, one JSON object per
line. "item" is the item as it was read: correct it, leave out lines that are not
to be redriven, and hand the file to
  ` + p.app.Name + ` skips redrive EXECUTION --from FILE
Where "item" is null, the item is not known whole: its read failed, it was too
long, or fields of it are hidden. What is known is in "stored"; give the item, or
leave out the line.`,
		Example:           "  " + p.app.Name + " skips export 12 --out skipped.jsonl",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			filter.Execution = id
			return p.exportSkips(cmd.Context(), filter, out)
		},
	}
	addSkipFilter(cmd, &filter)
	cmd.Flags().StringVar(&out, "out", "", "the `FILE` to write, which must not exist (default: standard output)")
	return cmd
}

func (p *program) exportSkips(ctx context.Context, filter core.SkipFilter, out string) error {
	if err := p.configure(); err != nil {
		return err
	}
	n := 0
	_, err := p.execution(ctx, filter.Execution, func(s *Session) (err error) {
		if out == "" {
			n, err = writeSkips(ctx, p.out, s.Repository, filter)
			return err
		}
		file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // items may be private
		if errors.Is(err, fs.ErrExist) {
			return usagef("--out %s: the file is there already, and may have been edited", out)
		}
		if err != nil {
			return usage(fmt.Errorf("--out: %w", err))
		}
		n, err = writeSkips(ctx, file, s.Repository, filter)
		return errors.Join(err, file.Close())
	})
	if err != nil {
		return err
	}
	if out != "" || n == 0 {
		p.log.InfoContext(ctx, plural(n, "skipped item")+" exported")
	}
	return nil
}

// writeSkips writes one line for each item that the filter selects.
func writeSkips(ctx context.Context, w io.Writer, items core.SkippedItems, filter core.SkipFilter) (n int, err error) {
	buffered := bufio.NewWriter(w)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false) // the item is to be read by people
	for {
		page, err := items.SkippedItems(ctx, filter)
		if err != nil {
			return n, err
		}
		for _, s := range page {
			if err := encoder.Encode(newSkipRecord(s)); err != nil {
				return n, fmt.Errorf("write skipped item %d: %w", s.ID, err)
			}
			n++
		}
		if len(page) < filter.Limit {
			break
		}
		filter.After = page[len(page)-1].ID
	}
	if err := buffered.Flush(); err != nil {
		return n, fmt.Errorf("write the skipped items: %w", err)
	}
	return n, nil
}

// readSkips reads an export back: items by the number of their skip. What is
// wrong with it is reported with its line, all of it together.
func readSkips(path string) (map[int64]json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usage(fmt.Errorf("--from: %w", err))
	}
	defer func() { _ = file.Close() }() //nolint:errcheck // it was only read
	items, at := map[int64]json.RawMessage{}, map[int64]int{}
	var errs []error
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, end := lines.ReadBytes('\n')
		if end != nil && !errors.Is(end, io.EOF) {
			return nil, fmt.Errorf("--from %s: %w", path, end)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			r, err := readSkip(line)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s:%d: %w", path, n, err))
			case at[r.ID] > 0:
				errs = append(errs, fmt.Errorf("%s:%d: skipped item %d is in line %d already", path, n, r.ID, at[r.ID]))
			default:
				items[r.ID], at[r.ID] = r.Item, n
			}
		}
		if end != nil {
			break
		}
	}
	if len(errs) > 0 {
		return nil, usage(errors.Join(errs...))
	}
	if len(items) == 0 {
		return nil, usagef("--from %s: there is no skipped item in it", path)
	}
	return items, nil
}

func readSkip(line []byte) (skipRecord, error) {
	var r skipRecord
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("not a line of an export: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("not a line of an export: there is something behind the JSON object")
	}
	if r.ID < 1 {
		return r, errors.New(`"id" is missing: the number of the skipped item`)
	}
	return r, nil
}
