package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	diffContext = 2
	maxDiff     = 60
	// maxCompared bounds the product of the line counts; beyond it all lines count as different.
	maxCompared = 4_000_000
)

type edit struct {
	kind     byte
	text     string
	old, now int // the 1-based number of the line; for a line in only one text, of the line that it precedes
}

func (c *comparison) diff(changes []Change) string {
	if c.after.From.IsMade() {
		return ""
	}
	var all, refused []fileDiff
	for _, d := range c.fileDiffs() {
		if len(d.hunks) == 0 {
			continue
		}
		all = append(all, d)
		d.hunks = slices.DeleteFunc(slices.Clone(d.hunks), func(h []edit) bool { return !c.isRefused(changes, d, h) })
		if len(d.hunks) > 0 {
			refused = append(refused, d)
		}
	}
	if len(refused) > 0 {
		all = refused
	}
	var lines []string
	for _, d := range all {
		lines = append(lines, d.lines(c.last)...)
	}
	if len(lines) > maxDiff {
		lines = append(lines[:maxDiff], fmt.Sprintf("... and %d more lines", len(lines)-maxDiff))
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

type fileDiff struct {
	before, after *yamlfile.Document
	hunks         [][]edit
}

func (c *comparison) fileDiffs() []fileDiff {
	diffs := []fileDiff{{before: c.before.Doc, after: c.after.Doc}}
	for _, i := range c.after.Included {
		diffs = append(diffs, fileDiff{before: includedDoc(c.before, i.Name), after: i.Doc})
	}
	for _, i := range c.before.Included {
		if includedDoc(c.after, i.Name) == nil {
			diffs = append(diffs, fileDiff{before: i.Doc})
		}
	}
	for i, d := range diffs {
		diffs[i].hunks = hunksOf(lineEdits(linesOf(d.before), linesOf(d.after)))
	}
	return diffs
}

func includedDoc(f *tree.File, name string) *yamlfile.Document {
	for _, i := range f.Included {
		if i.Name == name {
			return i.Doc
		}
	}
	return nil
}

func linesOf(doc *yamlfile.Document) []string {
	if doc == nil {
		return nil
	}
	return splitText(doc.Text)
}

func (d fileDiff) lines(last core.JobExecutionID) []string {
	path := "(not included any more)"
	if d.after != nil {
		path = d.after.Path
	}
	lines := []string{fmt.Sprintf("--- execution %d", last), "+++ " + path}
	for _, h := range d.hunks {
		olds, news := 0, 0
		for _, e := range h {
			if e.kind != '+' {
				olds++
			}
			if e.kind != '-' {
				news++
			}
		}
		lines = append(lines, fmt.Sprintf("@@ -%d,%d +%d,%d @@", h[0].old, olds, h[0].now, news))
		for _, e := range h {
			lines = append(lines, string(e.kind)+secret.Line(e.text))
		}
	}
	return lines
}

func (c *comparison) isRefused(changes []Change, d fileDiff, hunk []edit) bool {
	for _, change := range changes {
		if !change.Refused || change.Step == "" {
			continue
		}
		old, now := c.before.StepNamed(change.Step), c.after.StepNamed(change.Step)
		for _, e := range hunk {
			if e.kind == '-' && spans(old, d.before, e.old) || e.kind == '+' && spans(now, d.after, e.now) {
				return true
			}
		}
	}
	return false
}

func spans(s *tree.Step, doc *yamlfile.Document, line int) bool {
	return s != nil && s.Element.Model.Node.HasLine(doc, line)
}

func splitText(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

func lineEdits(old, now []string) []edit {
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	var edits []edit
	add := func(kind byte, i, j int) {
		text := ""
		if kind == '+' {
			text = now[j]
		} else {
			text = old[i]
		}
		edits = append(edits, edit{kind, text, i + 1, j + 1})
	}
	for i := range head {
		add(' ', i, i)
	}
	common := commonLines(old[head:len(old)-tail], now[head:len(now)-tail])
	i, j := head, head
	for _, pair := range append(common, [2]int{len(old) - tail - head, len(now) - tail - head}) {
		for ; i < head+pair[0]; i++ {
			add('-', i, j)
		}
		for ; j < head+pair[1]; j++ {
			add('+', i, j)
		}
		if i < len(old)-tail && j < len(now)-tail {
			add(' ', i, j)
			i, j = i+1, j+1
		}
	}
	for ; i < len(old); i, j = i+1, j+1 {
		add(' ', i, j)
	}
	return edits
}

func commonLines(old, now []string) [][2]int {
	if len(old)*len(now) > maxCompared {
		return nil
	}
	longest := make([][]int, len(old)+1)
	for i := range longest {
		longest[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if old[i] == now[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(old) && j < len(now); {
		switch {
		case old[i] == now[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

func hunksOf(edits []edit) [][]edit {
	var hunks [][]edit
	from, to := -1, -1
	for i, e := range edits {
		if e.kind == ' ' {
			continue
		}
		if from >= 0 && i-diffContext > to {
			hunks = append(hunks, edits[from:to])
			from = -1
		}
		if from < 0 {
			from = max(0, i-diffContext)
		}
		to = min(len(edits), i+diffContext+1)
	}
	if from >= 0 {
		hunks = append(hunks, edits[from:to])
	}
	return hunks
}
