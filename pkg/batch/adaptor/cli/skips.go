package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (p *program) skipsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skips",
		Short: "List, show, export and redrive skipped items",
		Long: `An item that a step may skip is stored with the error that it failed with. When
the data or the job is right again, redrive runs only the skipped items through
the same processors and writers.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.skipsListCommand(), p.skipsShowCommand(), p.skipsExportCommand(), p.redriveCommand())
	return cmd
}

// skipRecord is the JSON form of a skipped item, and a line of an export. Item is
// null where the item is not known whole; Stored is then what is known.
type skipRecord struct {
	ID        int64           `json:"id"`
	Execution int64           `json:"execution"`
	Step      string          `json:"step"`
	Phase     string          `json:"phase"`
	Path      string          `json:"path,omitempty"`
	Line      int64           `json:"line,omitempty"`
	Class     string          `json:"class"`
	Error     string          `json:"error"`
	Item      json.RawMessage `json:"item"`
	Stored    json.RawMessage `json:"stored,omitempty"`
	SHA256    string          `json:"sha256,omitempty"`
	Redriven  int64           `json:"redriven_by,omitempty"`
	Created   *time.Time      `json:"created,omitempty"`
}

func newSkipRecord(s core.SkippedItem) skipRecord {
	r := skipRecord{
		ID: s.ID, Execution: int64(s.JobExecutionID), Step: s.Step, Phase: string(s.Phase), Path: s.Meta.Path, Line: s.Meta.Line,
		Class: s.Class, Error: s.Error, Item: s.Item, SHA256: s.SHA256, Redriven: int64(s.RedrivenBy), Created: timeRecord(s.CreatedAt),
	}
	if s.Truncated {
		r.Item, r.Stored = nil, s.Item
	}
	return r
}

func (p *program) skipsListCommand() *cobra.Command {
	var filter core.SkipFilter
	cmd := &cobra.Command{
		Use:               "list EXECUTION",
		Short:             "List the items that an execution skipped",
		Example:           "  " + p.app.Name + " skips list 12 --phase write",
		Args:              oneExecution,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			if filter.Limit < 1 {
				return usagef("--limit %d: at least 1", filter.Limit)
			}
			filter.Execution = id
			return p.listSkips(cmd.Context(), filter)
		},
	}
	f := cmd.Flags()
	addSkipFilter(cmd, &filter)
	f.BoolVar(&filter.Left, "left", false, "only items that were not redriven")
	f.Int64Var(&filter.After, "after", 0, "only items with a greater number than `ITEM`: the next page")
	f.IntVar(&filter.Limit, "limit", 50, "at most `N` items")
	p.addFormatFlag(cmd)
	return cmd
}

func addSkipFilter(cmd *cobra.Command, filter *core.SkipFilter) {
	cmd.Flags().StringVar(&filter.Step, "step", "", "only items of the step with this `NAME`")
	cmd.Flags().Var((*phaseFlag)(&filter.Phase), "phase", "only items that failed in this phase: read, process or write")
	completeFlag(cmd, "phase", phaseNames()...)
}

type phaseFlag core.Phase

func phaseNames() []string {
	return []string{string(core.PhaseRead), string(core.PhaseProcess), string(core.PhaseWrite)}
}

func (f *phaseFlag) String() string { return string(*f) }
func (f *phaseFlag) Type() string   { return "PHASE" }
func (f *phaseFlag) Set(text string) error {
	switch core.Phase(text) {
	case core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
		*f = phaseFlag(text)
		return nil
	}
	return fmt.Errorf("allowed: %s", joinWords(phaseNames()))
}

func (p *program) listSkips(ctx context.Context, filter core.SkipFilter) error {
	if err := p.configure(); err != nil {
		return err
	}
	limit := filter.Limit
	filter.Limit++ // one more tells whether there is a next page
	var page []core.SkippedItem
	_, err := p.execution(ctx, filter.Execution, func(s *Session) (err error) {
		page, err = s.Repository.SkippedItems(ctx, filter)
		return err
	})
	if err != nil {
		return err
	}
	more := len(page) > limit
	page = page[:min(len(page), limit)]
	if p.format == formatJSON {
		records := make([]skipRecord, 0, len(page))
		for _, s := range page {
			records = append(records, newSkipRecord(s))
		}
		return p.printJSON(records)
	}
	if len(page) == 0 {
		p.log.InfoContext(ctx, fmt.Sprintf("no such skipped items of execution %d", filter.Execution))
		return nil
	}
	if err := p.print(skipTable(page)); err != nil {
		return err
	}
	if more {
		p.log.InfoContext(ctx, fmt.Sprintf("there are more: --after %d", page[len(page)-1].ID))
	}
	return nil
}

func skipTable(page []core.SkippedItem) string {
	columns := []column{
		{title: "id", right: true}, {title: "step"}, {title: "phase"}, {title: "where"}, {title: "class"}, {title: "error"},
		{title: "redriven by", right: true},
	}
	var rows [][]string
	for _, s := range page {
		rows = append(rows, []string{
			strconv.FormatInt(s.ID, 10), s.Step, string(s.Phase), s.Meta.String(), s.Class, clip(oneLine(s.Error), 80), redrivenText(s),
		})
	}
	return renderTable(columns, rows)
}

func redrivenText(s core.SkippedItem) string {
	if s.RedrivenBy == 0 {
		return "-"
	}
	return idText(s.RedrivenBy)
}

func (p *program) skipsShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ITEM",
		Short: "Show a skipped item, with its error",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("which skipped item? one number is expected"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 1 {
				return usagef("%q is no skipped item: a number such as 7 is expected", args[0])
			}
			return p.showSkip(cmd.Context(), id)
		},
	}
	p.addFormatFlag(cmd)
	return cmd
}

func (p *program) showSkip(ctx context.Context, id int64) error {
	if err := p.configure(); err != nil {
		return err
	}
	item, err := (*core.SkippedItem)(nil), core.ErrNotFound
	if !p.absent(p.settings.Repository.Database) {
		err = p.withSession(ctx, p.quiet(), func(s *Session) (err error) {
			item, err = s.Repository.SkippedItem(ctx, id)
			return err
		})
	}
	if errors.Is(err, core.ErrNotFound) {
		return usagef("there is no skipped item %d in %s", id, p.databaseText(p.settings.Repository.Database))
	}
	if err != nil {
		return err
	}
	if p.format == formatJSON {
		return p.printJSON(newSkipRecord(*item))
	}
	return p.print(p.skipPage(*item))
}

// skipPage is everything about one skipped item, for people.
func (p *program) skipPage(s core.SkippedItem) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s%s\n", name, text)
		}
	}
	fmt.Fprintf(&b, "skipped item %d of execution %d, step %s, phase %s\n\n", s.ID, s.JobExecutionID, s.Step, s.Phase)
	line("where", s.Meta.String())
	line("class", s.Class)
	line("error", oneLine(s.Error))
	line("skipped", timeText(s.CreatedAt))
	if s.RedrivenBy != 0 {
		line("redriven", "by execution "+idText(s.RedrivenBy))
	}
	switch {
	case s.Item == nil:
		line("item", "none: its read failed")
	case s.SHA256 != "":
		line("item", "cut when it was stored; sha256 of the whole "+s.SHA256)
	case s.Truncated:
		line("item", "not stored whole")
	}
	if s.Item != nil {
		b.WriteString("\n" + itemText(s) + "\n")
	}
	if s.RedrivenBy == 0 {
		b.WriteString("\nredrive it:  " + p.command("skips", "redrive", idText(s.JobExecutionID), "--step", s.Step) + "\n")
	}
	return b.String()
}

// itemText is the item for people: indented JSON, or the beginning of a cut one.
func itemText(s core.SkippedItem) string {
	var text string
	if s.Truncated && json.Unmarshal(s.Item, &text) == nil {
		return text
	}
	indented, err := json.MarshalIndent(s.Item, "", "  ")
	if err != nil {
		return string(s.Item) // cannot be: it was stored as JSON
	}
	return string(indented)
}
