package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
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

func (k keyColumn) comparison() string {
	if k.desc {
		return "<"
	}
	return ">"
}

// keyset is a statement that reads rows along a key, page by page.
type keyset struct {
	dialect tx.Dialect
	sql     string
	args    []any
	columns []resultColumn
	order   []keyColumn
	keys    []int // of order, in columns
	fetch   int
}

type pageSQL struct{ first, next string }

// With compared, the database also compares the key of each row with the previous row's; the answer is one
// more column.
func (k *keyset) pages(outputs []string, compared bool) pageSQL {
	order := make([]string, len(k.keys))
	for i := range k.keys {
		order[i] = k.keyColumn(i) + k.order[i].direction()
	}
	outputs = slices.Clone(outputs)
	if compared {
		for i := range k.keys {
			outputs = append(outputs, fmt.Sprintf("%s as k%d", k.keyColumn(i), i))
		}
		for i := range k.columns {
			outputs[i] += fmt.Sprintf(" as c%d", i)
		}
	}
	from := fmt.Sprintf("select %s from (\n%s\n) q", strings.Join(outputs, ", "), k.sql)
	// One extra row shows whether there is another page, and whether its first key equals our last.
	tail := fmt.Sprintf(" order by %s limit %d", strings.Join(order, ", "), k.fetch+1)
	first, next := from+tail, from+" where "+k.after()+tail
	if !compared {
		return pageSQL{first, next}
	}
	head, window := k.comparison()
	return pageSQL{head + first + window, head + next + window}
}

// The window has only the rows of the page, whatever the statement costs.
func (k *keyset) comparison() (head, tail string) {
	list, order, equal := make([]string, len(k.columns)), make([]string, len(k.keys)), make([]string, len(k.keys))
	for i := range list {
		list[i] = fmt.Sprintf("c%d", i)
	}
	for i := range k.keys {
		order[i] = fmt.Sprintf("k%d%s", i, k.order[i].direction())
		equal[i] = fmt.Sprintf("k%d = lag(k%d) over w", i, i)
	}
	by := strings.Join(order, ", ")
	return fmt.Sprintf("select %s, %s from (\n", strings.Join(list, ", "), strings.Join(equal, " and ")),
		fmt.Sprintf("\n) p window w as (order by %s) order by %s", by, by)
}

func (k *keyset) after() string {
	keys, values := make([]string, len(k.keys)), make([]string, len(k.keys))
	same := k.dialect != tx.MySQL || len(keys) == 1 // which uses no index for (a, b) > (?, ?)
	for i := range k.keys {
		keys[i], values[i] = k.keyColumn(i), k.columns[k.keys[i]].variable(k.dialect, len(k.args)+i+1)
		same = same && k.order[i].desc == k.order[0].desc
	}
	if same {
		return fmt.Sprintf("(%s) %s (%s)", strings.Join(keys, ", "), k.order[0].comparison(), strings.Join(values, ", "))
	}
	condition := ""
	for i := len(keys) - 1; i >= 0; i-- {
		behind := fmt.Sprintf("%s %s %s", keys[i], k.order[i].comparison(), values[i])
		if condition == "" {
			condition = behind
			continue
		}
		condition = fmt.Sprintf("%s %s= %s and (%s or %s = %s and %s)", keys[i], k.order[i].comparison(), values[i], behind, keys[i], values[i], condition)
		if i > 0 {
			condition = "(" + condition + ")"
		}
	}
	return condition
}

// keyColumn names a key by its column, which may differ from the field's name because of the item's `from`.
func (k *keyset) keyColumn(i int) string {
	return `q.` + k.columns[k.keys[i]].source()
}

func (k *keyset) differ(a, b []row.Value) bool {
	for i := range a {
		if k.columns[k.keys[i]].differ(a[i], b[i]) {
			return true
		}
	}
	return false
}

func (k *keyset) key(p page, at int, dst []row.Value) ([]row.Value, error) {
	dst = dst[:0]
	for i, column := range k.keys {
		v, err := p.raw(at, column)
		if err == nil {
			err = sqlvalue.Check(v)
		}
		if err == nil && v.IsNull() {
			err = errors.New("it is null in a row")
		}
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.order[i].name, err)
		}
		dst = append(dst, v)
	}
	return dst, nil
}

func (k *keyset) describe(key []row.Value) string {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = k.order[i].name + " " + v.String()
	}
	return strings.Join(parts, ", ")
}
