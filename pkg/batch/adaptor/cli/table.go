package cli

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// column is a column of a table; numbers are aligned to the right.
type column struct {
	title string
	right bool
}

// renderTable draws rows under a header line, without a frame, so that the
// columns can be read by people and by awk. It ends with a newline. Colours are
// removed by the writer where they do not belong.
func renderTable(columns []column, rows [][]string) string {
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	t := table.New().
		Border(lipgloss.Border{Top: "─", Middle: "─"}).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).
		Headers(titles...).Rows(rows...).
		StyleFunc(func(row, col int) lipgloss.Style {
			s := lipgloss.NewStyle()
			if col < len(columns)-1 {
				s = s.PaddingRight(2)
			}
			if columns[col].right {
				s = s.Align(lipgloss.Right)
			}
			if row == table.HeaderRow {
				return s.Bold(true)
			}
			if col < len(rows[row]) {
				word, _, _ := strings.Cut(rows[row][col], " ")
				if c := statusColor(core.Status(word)); c != nil {
					s = s.Foreground(c)
				}
			}
			return s
		})
	var b strings.Builder
	for line := range strings.SplitSeq(t.String(), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func statusColor(s core.Status) color.Color {
	switch s {
	case core.StatusCompleted:
		return lipgloss.Green
	case core.StatusFailed, core.StatusUnknown, core.StatusAbandoned:
		return lipgloss.Red
	case core.StatusStopped, core.StatusStopping:
		return lipgloss.Yellow
	case core.StatusStarting, core.StatusStarted:
		return lipgloss.Cyan
	}
	return nil
}

func statusText(s core.Status) string {
	if c := statusColor(s); c != nil {
		return lipgloss.NewStyle().Foreground(c).Render(string(s))
	}
	return string(s)
}

func errorStyle() lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true) }
