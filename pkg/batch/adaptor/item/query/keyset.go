package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
)

type keyColumn struct {
	name string
	desc bool
}

func keyColumns(key []string) []keyColumn {
	columns := make([]keyColumn, len(key))
	for i, text := range key {
		columns[i] = keyColumn{name: text}
		name, direction, given := cutLast(text)
		if given && (strings.EqualFold(direction, "desc") || strings.EqualFold(direction, "asc")) {
			columns[i] = keyColumn{name: name, desc: strings.EqualFold(direction, "desc")}
		}
	}
	return columns
}

func (k keyColumn) unknown(names []string, otherwise string) error {
	if name, direction, given := cutLast(k.name); given && slices.Contains(names, name) {
		return fmt.Errorf("%s is not a direction of %s: write `%s` to read in ascending order, `%s desc` in descending order", direction, name, name, name)
	}
	return fmt.Errorf(otherwise+"%s", k.name, nearest.Hint(k.name, names))
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, ' ')
	if i < 0 {
		return text, "", false
	}
	return strings.TrimRight(text[:i], " "), text[i+1:], true
}

func (k keyColumn) String() string { return k.name + k.direction() }

func (k keyColumn) direction() string {
	if k.desc {
		return " desc"
	}
	return ""
}

// Columns are named, so that a column added by a migration does not change a prepared statement's result.
func (r *reader) statements() {
	outputs := make([]string, len(r.columns))
	for i := range r.columns {
		outputs[i] = r.engine.output(&r.columns[i])
	}
	r.plain = r.pages(outputs, nil)
	r.comparing = r.pages(outputs, r.keys)
}

type pageSQL struct{ first, next string }

// With compared, the database also compares the key of each row with the previous row's; the answer is one
// more column.
func (r *reader) pages(outputs []string, compared []int) pageSQL {
	order := make([]string, len(r.keys))
	for i := range r.keys {
		order[i] = r.keyColumn(i) + r.order[i].direction()
	}
	outputs = slices.Clone(outputs)
	for i := range compared {
		outputs = append(outputs, fmt.Sprintf("%s as k%d", r.keyColumn(i), i))
	}
	if len(compared) > 0 {
		for i := range r.columns {
			outputs[i] += fmt.Sprintf(" as c%d", i)
		}
	}
	from := fmt.Sprintf("select %s from (\n%s\n) q", strings.Join(outputs, ", "), r.sql)
	// One extra row shows whether there is another page, and whether its first key equals our last.
	tail := fmt.Sprintf(" order by %s limit %d", strings.Join(order, ", "), r.config.Fetch+1)
	first, next := from+tail, from+" where "+r.after()+tail
	if len(compared) == 0 {
		return pageSQL{first, next}
	}
	head, window := r.comparison()
	return pageSQL{head + first + window, head + next + window}
}

// The window has only the rows of the page, whatever the statement costs.
func (r *reader) comparison() (head, tail string) {
	list, order, equal := make([]string, len(r.columns)), make([]string, len(r.keys)), make([]string, len(r.keys))
	for i := range list {
		list[i] = fmt.Sprintf("c%d", i)
	}
	for i := range r.keys {
		order[i] = fmt.Sprintf("k%d%s", i, r.order[i].direction())
		equal[i] = fmt.Sprintf("k%d = lag(k%d) over w", i, i)
	}
	by := strings.Join(order, ", ")
	return fmt.Sprintf("select %s, %s from (\n", strings.Join(list, ", "), strings.Join(equal, " and ")),
		fmt.Sprintf("\n) p window w as (order by %s) order by %s", by, by)
}

func (r *reader) after() string {
	keys, values := make([]string, len(r.keys)), make([]string, len(r.keys))
	same := true
	for i := range r.keys {
		keys[i], values[i] = r.keyColumn(i), r.db.Dialect().Placeholder(len(r.args)+i+1)
		same = same && r.order[i].desc == r.order[0].desc
	}
	if same {
		return fmt.Sprintf("(%s) %s (%s)", strings.Join(keys, ", "), r.order[0].comparison(), strings.Join(values, ", "))
	}
	condition := ""
	for i := len(keys) - 1; i >= 0; i-- {
		behind := fmt.Sprintf("%s %s %s", keys[i], r.order[i].comparison(), values[i])
		if condition == "" {
			condition = behind
			continue
		}
		condition = fmt.Sprintf("%s %s= %s and (%s or %s = %s and %s)", keys[i], r.order[i].comparison(), values[i], behind, keys[i], values[i], condition)
		if i > 0 {
			condition = "(" + condition + ")"
		}
	}
	return condition
}

func (k keyColumn) comparison() string {
	if k.desc {
		return "<"
	}
	return ">"
}

// keyColumn names a key by its column, which may differ from the field's name because of the item's `from`.
func (r *reader) keyColumn(i int) string {
	return `q.` + r.columns[r.keys[i]].source()
}
