package cli

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type column struct {
	title string
	right bool
}

const columnGap = 2

// Without a frame, so that people and awk can read the columns.
func renderTable(columns []column, rows [][]string) string {
	titles := make([]string, len(columns))
	widths := make([]int, len(columns))
	for i, c := range columns {
		titles[i] = c.title
		widths[i] = ansi.StringWidth(c.title)
		for _, row := range rows {
			if i < len(row) {
				for _, line := range cellLines(row[i]) {
					widths[i] = max(widths[i], ansi.StringWidth(line))
				}
			}
		}
	}
	total := (len(columns) - 1) * columnGap
	for _, w := range widths {
		total += w
	}
	var b strings.Builder
	bold := func(title string) string { return ansi.NewStyle().Bold().Styled(title) }
	renderRow(&b, columns, widths, titles, bold)
	b.WriteString(strings.Repeat("─", total) + "\n")
	for _, row := range rows {
		renderRow(&b, columns, widths, row, paintStatus)
	}
	return b.String()
}

func renderRow(b *strings.Builder, columns []column, widths []int, row []string, paint func(string) string) {
	lines := 1
	for _, cell := range row {
		lines = max(lines, len(cellLines(cell)))
	}
	for n := range lines {
		var line strings.Builder
		for i := range min(len(columns), len(row)) {
			text := ""
			if cell := cellLines(row[i]); n < len(cell) {
				text = cell[n]
			}
			space := strings.Repeat(" ", max(0, widths[i]-ansi.StringWidth(text)))
			if text != "" {
				text = paint(text)
			}
			if columns[i].right {
				line.WriteString(space + text)
			} else {
				line.WriteString(text + space)
			}
			line.WriteString(strings.Repeat(" ", columnGap))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// A tab has no fixed width.
func cellLines(cell string) []string {
	return strings.Split(strings.ReplaceAll(cell, "\t", "    "), "\n")
}

func paintStatus(cell string) string {
	word, _, _ := strings.Cut(cell, " ")
	if c := statusColor(core.Status(word)); c != nil {
		return ansi.NewStyle().ForegroundColor(c).Styled(cell)
	}
	return cell
}

func statusColor(s core.Status) ansi.Color {
	switch s {
	case core.StatusCompleted:
		return ansi.Green
	case core.StatusFailed, core.StatusUnknown, core.StatusAbandoned:
		return ansi.Red
	case core.StatusStopped, core.StatusStopping:
		return ansi.Yellow
	case core.StatusStarting, core.StatusStarted, core.StatusParked:
		return ansi.Cyan
	}
	return nil
}

func statusText(s core.Status) string { return paintStatus(string(s)) }

func errorStyle() ansi.Style { return ansi.NewStyle().Bold().ForegroundColor(ansi.Red) }
