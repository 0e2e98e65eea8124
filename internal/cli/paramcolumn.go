package cli

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// maxParameters is how many characters of its parameters a row of a table has.
const maxParameters = 60

// parameterColumn writes the parameters of the rows of a table. Those that tell rows of the same
// job apart come first, since the last ones are cut off.
type parameterColumn struct {
	// values are by job and parameter: its words, and in how many rows it is.
	values map[string]map[string]map[string]int
	rows   map[string]int
}

func newParameterColumn() *parameterColumn {
	return &parameterColumn{values: map[string]map[string]map[string]int{}, rows: map[string]int{}}
}

// add notes a row.
func (c *parameterColumn) add(job string, params []core.Parameter) {
	c.rows[job]++
	if c.values[job] == nil {
		c.values[job] = map[string]map[string]int{}
	}
	for _, p := range params {
		if c.values[job][p.Name] == nil {
			c.values[job][p.Name] = map[string]int{}
		}
		c.values[job][p.Name][canonicalWord(p)]++
	}
}

// differs reports whether not all rows of a job have the parameter with the same value.
func (c *parameterColumn) differs(job string, p core.Parameter) bool {
	return c.values[job][p.Name][canonicalWord(p)] < c.rows[job]
}

// text is the text of a row that was noted. Of a long value that differs it has the beginning and the end.
func (c *parameterColumn) text(job string, params []core.Parameter) string {
	var telling, others []core.Parameter
	for _, p := range params {
		if c.differs(job, p) {
			telling = append(telling, p)
		} else {
			others = append(others, p)
		}
	}
	text := parameterText(slices.Concat(telling, others))
	if len([]rune(text)) <= maxParameters || len(telling) == 0 {
		return clip(text, maxParameters)
	}
	words := make([]string, len(telling))
	for i, p := range telling {
		words[i] = clipMiddle(parameterText([]core.Parameter{p}), max(maxParameters/len(telling)-3, 12))
	}
	if len(others) > 0 {
		words = append(words, parameterText(others))
	}
	return clip(strings.Join(words, " "), maxParameters)
}

// clipMiddle shortens a text to at most width characters: the end of a path or of a name says
// more than its middle.
func clipMiddle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	begin := width / 3
	return string(runes[:begin]) + "…" + string(runes[len(runes)-(width-begin-1):])
}
