package cli

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const maxParameters = 60

// Those that distinguish rows of the same job come first: the last ones are cut
// off.
type parameterColumn struct {
	// By job, parameter and text.
	values map[string]map[string]map[string]int
	rows   map[string]int
}

func newParameterColumn() *parameterColumn {
	return &parameterColumn{values: map[string]map[string]map[string]int{}, rows: map[string]int{}}
}

func (c *parameterColumn) add(job string, of core.Parameters) {
	params := operator.Given(of.Identifying())
	c.rows[job]++
	if c.values[job] == nil {
		c.values[job] = map[string]map[string]int{}
	}
	for _, p := range params {
		if c.values[job][p.Name] == nil {
			c.values[job][p.Name] = map[string]int{}
		}
		c.values[job][p.Name][wording.Parameter(p)]++
	}
}

func (c *parameterColumn) differs(job string, p core.Parameter) bool {
	return c.values[job][p.Name][wording.Parameter(p)] < c.rows[job]
}

func (c *parameterColumn) text(job string, of core.Parameters) string {
	if redrive := wording.RedriveOf(of); redrive != "" {
		return humanize.Clip(wording.Given(of), 2*maxParameters)
	}
	var telling, others []core.Parameter
	for _, p := range operator.Given(of.Identifying()) {
		if c.differs(job, p) {
			telling = append(telling, p)
		} else {
			others = append(others, p)
		}
	}
	text := wording.Parameters(slices.Concat(telling, others))
	if len([]rune(text)) <= maxParameters || len(telling) == 0 {
		return humanize.Clip(text, maxParameters)
	}
	words := make([]string, len(telling))
	for i, p := range telling {
		words[i] = clipMiddle(wording.Parameters([]core.Parameter{p}), max(maxParameters/len(telling)-3, 12))
	}
	if len(others) > 0 {
		words = append(words, wording.Parameters(others))
	}
	return humanize.Clip(strings.Join(words, " "), maxParameters)
}

// The end of a path or name is more useful than its middle.
func clipMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	begin := width / 3
	return string(runes[:begin]) + "…" + string(runes[len(runes)-(width-begin-1):])
}
