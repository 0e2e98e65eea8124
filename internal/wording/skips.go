package wording

import (
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// SkipColumns are the titles of skipped items as CSV.
func SkipColumns() []string {
	return []string{"id", "step", "phase", "path", "line", "index", "row", "class", "error", "redriven_by"}
}

// SkipCells are the values of SkipColumns, without commas in numbers.
func SkipCells(s *operator.SkipView) []string {
	by := ""
	if s.RedrivenBy != 0 {
		by = ID(s.RedrivenBy)
	}
	return []string{
		strconv.FormatInt(s.ID, 10), s.Step, string(s.Phase), s.Path, strconv.FormatInt(s.Line, 10),
		strconv.FormatInt(s.Index, 10), strconv.FormatInt(s.Row, 10), s.Class, humanize.OneLine(s.Error), by,
	}
}

// NoFields says why a text is not split.
func NoFields(reason string) string {
	reason, _, _ = strings.Cut(reason, "\n")
	return "Its text is not split into columns: " + reason
}
