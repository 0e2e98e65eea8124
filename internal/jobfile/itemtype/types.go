package itemtype

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Types resolves names and inline maps to item types.
type Types struct {
	Named map[string]item.Type // of the file's `types`; nil where one is broken
	Order []string
	Reg   *registry.Registry
	Zone  *time.Location // of the job
}

// RowSchema makes a schema of declared fields; nil jobZone means UTC.
func RowSchema(c *yamlfile.Collector, at *yamlfile.Node, jobZone *time.Location, fields yamlfile.OrderedMap[language.Field]) (*row.Schema, bool) {
	before := c.Reports()
	if len(fields) == 0 {
		c.Add(at, "a row type needs at least one field", "such as {id: int, name: string null}")
		return nil, false
	}
	list := make([]row.Field, 0, len(fields))
	for _, e := range fields {
		m := e.Value
		node := m.Node
		if node != nil && node.Kind == yamlfile.Map && node.Get("type") != nil {
			node = node.Get("type")
		}
		if m.Type == "" {
			continue // reported by the decoder
		}
		kind, nullable, ok := fieldType(c, node, e.Name, m.Type)
		if !ok {
			continue
		}
		f := row.Field{Name: e.Name, Kind: kind, Nullable: nullable, From: m.From, Format: m.Format, Nulls: m.NullIf, Optional: m.Optional, Exact: m.Exact, Separator: m.Separator,
			Scale: m.Scale, DecimalSeparator: m.DecimalSeparator, ThousandsSeparator: m.ThousandsSeparator, TrailingMinus: m.TrailingMinus, Trues: m.True, Falses: m.False}
		if !language.Identifier.MatchString(e.Name) {
			c.Add(e.Key, fmt.Sprintf("the field name %q is not an identifier", e.Name), language.IdentifierHint+"; `from` gives its name in the source")
			continue
		}
		if !setMisfits(c, &f, m, jobZone) {
			continue
		}
		if f.Optional && !f.Nullable && f.Default.IsNull() {
			c.Add(m.Node.Find("optional"), fmt.Sprintf("field %s is optional, so it must allow null", e.Name), "type: "+f.Kind.String()+" null, or give it a default")
			continue
		}
		if _, err := row.NewSchema(f); err != nil {
			c.Add(misplaced(&m), err.Error(), "")
			continue
		}
		list = append(list, f)
	}
	if c.Reports() > before {
		return nil, false
	}
	schema, err := row.NewSchema(list...)
	if err != nil {
		c.Add(at, err.Error(), "")
		return nil, false
	}
	return schema, true
}

func misplaced(m *language.Field) *yamlfile.Node {
	for _, key := range []string{"format", "scale", "decimal_separator", "thousands_separator", "trailing_minus", "separator", "exact"} {
		if n := m.Node.Get(key); n != nil {
			return m.Node.Find(key)
		}
	}
	return m.Node
}

func fieldType(c *yamlfile.Collector, at *yamlfile.Node, name, text string) (kind row.Kind, nullable, ok bool) {
	words := strings.Fields(text)
	if n := len(words); n > 1 && words[n-1] == "null" {
		nullable, words = true, words[:n-1]
	}
	if kind, ok := row.KindByName(strings.Join(words, " ")); ok {
		return kind, nullable, true
	}
	if meant := typeCure(text); meant != "" {
		c.Add(at, fmt.Sprintf("field %s: %q is not a type", name, text), "write "+meant)
		return 0, false, false
	}
	c.Add(at, fmt.Sprintf("field %s: %q is not a type", name, text), yamlfile.Suggest(strings.TrimSuffix(text, " null"), row.KindNames())+"; followed by `null` if it may be missing")
	return 0, false, false
}

var listText = regexp.MustCompile(`^(?i:(?:list|array|set|slice)(?:(?: of |<|\[|\()([a-z0-9 ]+)[>)\]]?)?|\[\]([a-z0-9]+)|([a-z0-9 ]+)\[\])( null)?$`)

func typeCure(text string) string {
	if m := listText.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		elem := typeCure(strings.TrimSuffix(cmp.Or(m[1], m[2], m[3], "string"), "s"))
		if kind, _ := row.KindByName(elem); kind.IsList() || !row.ListOf(kind).IsList() {
			return "json: a list has simple values"
		}
		return "list of " + elem + m[4]
	}
	text, optional := strings.CutSuffix(strings.ToLower(text), "?")
	if i := strings.IndexByte(text, '('); i > 0 { // varchar(20)
		text = text[:i] + " " + text[strings.IndexByte(text, ')')+1:]
	}
	kind, nullable := "", optional
	words := strings.Fields(text)
	for i, word := range words {
		_, isKind := row.KindByName(word)
		switch {
		case word == "or" || word == "|" || word == "not":
		case slices.Contains([]string{"null", "nil", "none", "nullable", "optional"}, word):
			nullable = nullable || i == 0 || words[i-1] != "not"
		case kind != "":
			return ""
		case isKind:
			kind = word
		default:
			if kind = language.OtherKinds()[word]; kind == "" {
				return ""
			}
		}
	}
	if kind != "" && nullable {
		kind += " null"
	}
	return kind
}

// Decode reads an item type: a name, or an inline map of fields.
func (t *Types) Decode(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	switch {
	case n.Bad:
	case n.Kind == yamlfile.Map:
		fields := yamlfile.OrderedMap[language.Field]{}
		plain := yamlfile.Decoder{Collector: d.Collector, Forms: language.Forms()}
		good := plain.Decode(n, f.Key, reflect.ValueOf(&fields).Elem())
		if schema, ok := RowSchema(d.Collector, n, t.Zone, fields); ok && good {
			v.Set(reflect.ValueOf(item.RowOf("", schema)))
		}
	case n.Kind == yamlfile.List || n.Empty:
		d.Add(n, f.Key+" takes the name of an item type, or its fields", "such as {id: int, name: string null}")
	default:
		if strings.Contains(n.Text, "${") {
			d.Add(n, f.Key+": the type of items is fixed when the file is loaded, it cannot be late-bound", "")
			return
		}
		if it, ok := t.find(d.Collector, n); ok {
			v.Set(reflect.ValueOf(it))
		} else {
			d.Reported() // where the type is declared, if not here
		}
	}
}

func (t *Types) find(c *yamlfile.Collector, n *yamlfile.Node) (item.Type, bool) {
	if it, ok := t.Named[n.Text]; ok {
		return it, it != nil // a broken one was reported at its declaration
	}
	if it, ok := t.Reg.Item(n.Text); ok {
		return item.InZone(it, t.Zone), true
	}
	names := slices.Concat(t.Order, slices.DeleteFunc(t.Reg.ItemNames(), func(name string) bool { return slices.Contains(t.Order, name) }))
	hint := "declare it under `types`, or write its fields here: {id: int, name: string null}"
	if len(names) > 0 {
		hint = yamlfile.Suggest(n.Text, names)
	}
	c.Add(n, fmt.Sprintf("there is no item type %q", n.Text), hint)
	return nil, false
}

func setMisfits(c *yamlfile.Collector, f *row.Field, m language.Field, jobZone *time.Location) bool {
	before := c.Reports()
	f.Coerce, _ = row.CoerceByName(m.Coerce)
	setDefault(c, f, m)
	setZone(c, f, m, jobZone)
	switch {
	case c.Reports() > before:
	case f.Coerce == row.CoerceNull && !f.Nullable:
		c.Add(m.Node.Find("coerce"), fmt.Sprintf("field %s: with coerce: null its type must allow null", f.Name), "type: "+f.Kind.String()+" null")
	case f.Coerce == row.CoerceDefault && m.Default == nil:
		c.Add(m.Node.Find("coerce"), fmt.Sprintf("field %s: with coerce: default it needs a default", f.Name), "such as default: "+defaultSample(f.Kind))
	}
	return c.Reports() == before
}

func setDefault(c *yamlfile.Collector, f *row.Field, m language.Field) {
	if m.Default == nil || m.Default.Node == nil {
		return
	}
	if f.Nullable {
		c.Add(m.Node.Find("default"), fmt.Sprintf("field %s has a default, so it is never null", f.Name), "type: "+f.Kind.String())
		return
	}
	plain := row.Field{Name: f.Name, Kind: f.Kind, Nulls: []string{}}
	v, err := plain.Parse(m.Default.Node.Text)
	if err != nil {
		c.Add(m.Default.Node, "default: "+err.Error(), "such as "+defaultSample(f.Kind))
		return
	}
	f.Default = v
}

func defaultSample(k row.Kind) string {
	if k.IsList() {
		return `"[]"`
	}
	return cmp.Or(map[row.Kind]string{
		row.Bool:      "false",
		row.DateKind:  "2026-01-31",
		row.Timestamp: "2026-01-31T08:30:00Z",
		row.String:    "unknown",
		row.JSONKind:  `"{}"`,
		row.UUIDKind:  "00000000-0000-0000-0000-000000000000",
		row.BytesKind: `""`,
	}[k], "0")
}

func setZone(c *yamlfile.Collector, f *row.Field, m language.Field, jobZone *time.Location) {
	kind := f.Kind
	if elem, ok := kind.Elem(); ok {
		kind = elem
	}
	zoned := kind == row.Timestamp || kind == row.DateKind && isEpoch(m.Format)
	switch {
	case m.Zone != "" && !zoned:
		c.Add(m.Node.Find("zone"), fmt.Sprintf("field %s: a zone is for timestamp, not for %s", f.Name, f.Kind), "a date has none; leave it out")
	case m.Zone != "":
		zone, err := schedule.LoadZone(m.Zone)
		if err != nil {
			c.Add(m.Node.Find("zone"), fmt.Sprintf("field %s: zone: %v", f.Name, err), "such as Europe/Berlin")
			return
		}
		f.Zone = zone
	case zoned && jobZone != nil && jobZone != time.UTC:
		f.Zone = jobZone
	}
}

func isEpoch(format string) bool {
	probe, err := row.NewSchema(row.Field{Name: "x", Kind: row.DateKind, Format: format})
	return err == nil && probe.Field(0).Counts()
}
