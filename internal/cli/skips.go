package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type skipsCommands struct{ env *environment }

func (c skipsCommands) skipsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skips",
		Short: "List, show, export and redrive skipped items",
		Long: `A skipped item is stored with its error. After you have fixed the data or the job,
redrive runs only the skipped items through the same processors and writers.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.skipsListCommand(), c.skipsShowCommand(), c.skipsExportCommand(), c.redriveCommand())
	return cmd
}

func (c skipsCommands) skipsListCommand() *cobra.Command {
	var req operator.SkipsRequest
	cmd := &cobra.Command{
		Use:               "list EXECUTION",
		Short:             "List the items that an execution skipped",
		Example:           "  " + c.env.app.Name + " skips list 12 --phase write",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			if req.Limit < 1 {
				return usagef("--limit %d: at least 1", req.Limit)
			}
			req.Execution = id
			return c.listSkips(cmd.Context(), req)
		},
	}
	f := cmd.Flags()
	addSkipFlags(cmd, &req)
	f.BoolVar(&req.Left, "left", false, "only items that were not redriven")
	f.Int64Var(&req.After, "after", 0, "only items with a greater number than `ITEM`: the next page")
	f.IntVar(&req.Limit, "limit", 50, "at most `N` items")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func addSkipFlags(cmd *cobra.Command, req *operator.SkipsRequest) {
	cmd.Flags().StringVar(&req.Step, "step", "", "only items of the step with this `NAME`")
	cmd.Flags().Var((*phaseFlag)(&req.Phase), "phase", "only items that failed in this phase: read, process or write")
	completeFlag(cmd, "phase", phaseNames()...)
	cmd.Flags().StringVar(&req.Class, "class", "", "only items with errors of this `CLASS`")
	cmd.Flags().StringVar(&req.Text, "text", "", "only items with this `TEXT` in the error or the item")
	cmd.Flags().Int64Var(&req.Index, "index", 0, "only items of the array element with this `NUMBER`, counted from 1")
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
	return fmt.Errorf("allowed: %s", humanize.Join(phaseNames()))
}

func (c skipsCommands) listSkips(ctx context.Context, req operator.SkipsRequest) error {
	var page operator.SkipPage
	err := c.env.view(ctx, req.Execution, func(s *Session) (err error) {
		page, err = s.Service.Skips(ctx, req)
		return err
	})
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(page.Items)
	}
	if c.env.format == formatCSV {
		return c.skipsCSV(page.Items)
	}
	if len(page.Items) == 0 && page.Next == 0 {
		text := fmt.Sprintf("no such skipped items of execution %d", req.Execution)
		for _, id := range page.Elsewhere {
			text += "; another attempt has some:  " + c.env.command("skips", "list", wording.ID(id))
		}
		c.env.log.InfoContext(ctx, text)
		return nil
	}
	if err := c.env.print(skipTable(page.Items)); err != nil {
		return err
	}
	if page.Next != 0 {
		c.env.log.InfoContext(ctx, fmt.Sprintf("there are more: --after %d", page.Next))
	}
	return nil
}

func skipTable(page []operator.SkipView) string {
	columns := []column{
		{title: "id", right: true}, {title: "step"}, {title: "phase"}, {title: "where"}, {title: "class"}, {title: "error"},
		{title: "redriven by", right: true},
	}
	var rows [][]string
	for _, s := range page {
		rows = append(rows, []string{
			strconv.FormatInt(s.ID, 10), s.Step, string(s.Phase), placeText(s), s.Class, humanize.Clip(humanize.OneLine(s.Error), 80), redrivenText(s),
		})
	}
	return renderTable(columns, rows)
}

func placeText(s operator.SkipView) string {
	return item.Meta{Path: s.Path, Line: s.Line, Index: s.Index, Row: s.Row}.String()
}

func redrivenText(s operator.SkipView) string {
	if s.RedrivenBy == 0 {
		return "-"
	}
	return wording.ID(s.RedrivenBy)
}

func (c skipsCommands) skipsShowCommand() *cobra.Command {
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
				return usagef("%q is not a skipped item: a number such as 7 is expected", args[0])
			}
			return c.showSkip(cmd.Context(), id)
		},
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c skipsCommands) showSkip(ctx context.Context, id int64) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	item, err := (*operator.SkipView)(nil), core.ErrNotFound
	if !c.env.isAbsent(c.env.settings.Repository.Database) {
		err = c.env.withSession(ctx, c.env.observer(), func(s *Session) (err error) {
			if item, err = s.Service.SplitSkip(ctx, id); err == nil && item.Raw != nil && c.env.settings.Secrets.Values(*item.Raw) != *item.Raw {
				item.HideFields()
			}
			return err
		})
	}
	if errors.Is(err, core.ErrNotFound) {
		return usagef("no skipped item %d in %s", id, c.env.databaseText(c.env.settings.Repository.Database))
	}
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		return c.env.printJSON(item)
	}
	return c.env.print(c.skipPage(*item))
}

func (c skipsCommands) skipPage(s operator.SkipView) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s%s\n", name, text)
		}
	}
	fmt.Fprintf(&b, "skipped item %d of execution %d, step %s, phase %s\n\n", s.ID, s.Execution, s.Step, s.Phase)
	line("where", placeText(s))
	line("class", s.Class)
	line("error", humanize.OneLine(s.Error))
	line("field", wording.Fault(s.Fault))
	line("skipped", humanize.Time(s.CreatedAt))
	if s.RedrivenBy != 0 {
		line("redriven", "by execution "+wording.ID(s.RedrivenBy))
	}
	text := itemText(s)
	switch {
	case s.Raw != nil:
		line("text", rawPlace(s))
	case text == "" && s.Offset != nil:
		line("text", rawPlace(s)+"; not stored, as fields of the item are hidden")
	case s.Offset != nil:
		line("text", rawPlace(s)+"; not stored whole"+sumText(s))
	case text == "":
		line("item", "none: its read failed")
	case s.SHA256 != "":
		line("item", "cut when it was stored; sha256 of the whole "+s.SHA256)
	case s.Stored != nil:
		line("item", "not stored whole")
	}
	if text != "" {
		b.WriteString("\n" + text + "\n")
	}
	b.WriteString(fieldsText(&s))
	if s.RedrivenBy == 0 {
		b.WriteString("\nredrive it:  " + c.env.command("skips", "redrive", wording.ID(cmp.Or(s.LeftIn, s.Execution)), "--step", s.Step) + "\n")
	}
	return b.String()
}

// fieldsText are the fields of a text that could not be read, those with the mistake marked.
func fieldsText(s *operator.SkipView) string {
	if s.NoFields != "" {
		return "\n" + wording.NoFields(s.NoFields) + "\n"
	}
	if len(s.Fields) == 0 {
		return ""
	}
	rows := make([][]string, len(s.Fields))
	for i, f := range s.Fields {
		mark := ""
		if f.Bad {
			mark = "<- the mistake"
		}
		rows[i] = []string{strconv.Itoa(i + 1), f.Name, humanize.Clip(humanize.OneLine(f.Text), 80), mark}
	}
	text := "\n" + renderTable([]column{{title: "", right: true}, {title: "column"}, {title: "field"}, {title: ""}}, rows)
	if s.MoreFields {
		text += "...\n"
	}
	return text
}

func rawPlace(s operator.SkipView) string {
	return fmt.Sprintf("%s from byte %d on", humanize.Plural(int(*s.Length), "byte"), *s.Offset)
}

func sumText(s operator.SkipView) string {
	if s.SHA256 == "" {
		return ""
	}
	return "; sha256 of the whole " + s.SHA256
}

func itemText(s operator.SkipView) string {
	if s.Raw != nil {
		return *s.Raw
	}
	item, text := s.Item, ""
	if item == nil {
		if item = s.Stored; item == nil {
			return ""
		}
		if json.Unmarshal(item, &text) == nil {
			return text
		}
	}
	indented, err := json.MarshalIndent(item, "", "  ")
	if err != nil {
		return string(item) // cannot happen: it was stored as JSON
	}
	return string(indented)
}
