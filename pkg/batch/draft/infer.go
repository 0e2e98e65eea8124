package draft

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// DefaultRows is how many rows a sample has where nothing else is said.
const DefaultRows = 10_000

// Shape is what a sample of a file has, or what the catalogue of a database has of a table.
type Shape struct {
	// Path is that of the file, or table:NAME.
	Path string `json:"path"`
	// Format is csv, json, jsonl or table.
	Format string `json:"format"`
	// Table is the name of a table; Database is the name of its database, empty for the default
	// one. Key are the fields along which it is read; none: the catalogue has no key.
	Table    string   `json:"table,omitempty"`
	Database string   `json:"database,omitempty"`
	Key      []string `json:"key,omitempty"`
	// Delimiter is that of csv; Items is the key of a json array in its file.
	Delimiter string `json:"delimiter,omitempty"`
	Items     string `json:"items,omitempty"`
	// Rows is how many rows the sample has, 0 of a table; Whole says that the file has no more.
	Rows   int     `json:"rows"`
	Whole  bool    `json:"whole"`
	Fields []Field `json:"fields"`
	// Lists are the paths of arrays of objects, which `explode` can make rows of.
	Lists []string `json:"lists,omitempty"`

	head    string   // of a csv file
	records []record // the first ones
}

// Field is what the sample says of a field.
type Field struct {
	Name string `json:"name"`
	// From is its name in the file; empty: Name.
	From     string `json:"from,omitempty"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Optional bool   `json:"optional,omitempty"`
	// Format and NullIf are as in a job file; Scale is that of a decimal. Convert says that
	// values have several forms.
	Format  string   `json:"format,omitempty"`
	NullIf  []string `json:"null_if,omitempty"`
	Scale   *int     `json:"scale,omitempty"`
	Convert bool     `json:"convert,omitempty"`
	// Nulls and Misfits are rows without a value, and rows whose value is not of the type,
	// Misfit being one. Longest is the length of the longest text.
	Nulls   int    `json:"nulls"`
	Misfits int    `json:"misfits"`
	Misfit  string `json:"misfit,omitempty"`
	Longest int    `json:"longest"`
	// Note is what a person should look at.
	Note string `json:"note,omitempty"`
}

// value is one value of a sample. Numbers and booleans of JSON are bare.
type value struct {
	text string
	null bool
	bare bool
}

// tolerated is the share of values that may not fit a type that all others have: a job skips them.
const tolerated = 0.05

// absentTexts stand for no value in files that people made.
var absentTexts = regexp.MustCompile(`(?i)^(|-|n/?a|null|none|nil|\?)$`)

// dateFormats are tried in this order; an empty one is ISO 8601.
func dateFormats() []string {
	return []string{"", "dd.MM.yyyy", "MM/dd/yyyy", "dd/MM/yyyy", "yyyy/MM/dd", "MM/dd/yy", "MMM d, yyyy", "d MMM yyyy", "MMM dd yyyy", "dd-MMM-yyyy"}
}

// guess says which type the values have. seen is how many rows there are; absent ones lack
// the key of the field.
func guess(name, from string, values []value, absent int) Field {
	f := Field{Name: name, Nulls: absent, Optional: absent > 0}
	if from != name {
		f.From = from
	}
	var texts []value
	words := map[string]int{}
	for _, v := range values {
		switch {
		case v.null || v.text == "":
			f.Nulls++
			if !v.null {
				words[v.text]++
			}
		case !v.bare && absentTexts.MatchString(v.text):
			words[v.text]++
			texts = append(texts, v)
		default:
			f.Longest = max(f.Longest, len([]rune(v.text)))
			texts = append(texts, v)
		}
	}
	f.decide(texts)
	if f.Type != "string" {
		f.takeWords(words)
	} else if words[""] > 0 {
		f.NullIf = []string{""}
	}
	f.Nullable = f.Nulls > 0
	if len(texts) == 0 {
		f.Note = "no value in the sample: its type is not known"
	}
	return f
}

// takeWords makes nulls of the misfits that stand for no value.
func (f *Field) takeWords(words map[string]int) {
	for _, w := range sortedKeys(words) {
		if w == "" {
			continue
		}
		f.Misfits -= words[w]
		f.Nulls += words[w]
		f.NullIf = append(f.NullIf, w)
	}
	if len(f.NullIf) > 0 {
		f.NullIf = append([]string{""}, f.NullIf...)
	}
	if f.Misfits == 0 {
		f.Misfit = ""
	}
}

// decide chooses the narrowest type that all but a few values have.
func (f *Field) decide(values []value) {
	f.Type = "string"
	var words, bare, texts int
	for _, v := range values {
		switch {
		case v.bare:
			bare++
		case absentTexts.MatchString(v.text):
			words++
		default:
			texts++
		}
	}
	if bare+texts == 0 {
		return
	}
	candidates := []row.Field{{Kind: row.Int}, {Kind: row.Float}, {Kind: row.Bool}, {Kind: row.UUIDKind}}
	for _, elem := range []row.Kind{row.Int, row.Float, row.Bool, row.UUIDKind, row.DateKind, row.Timestamp, row.String} {
		candidates = append(candidates, row.Field{Kind: row.ListOf(elem)})
	}
	candidates = append(candidates, row.Field{Kind: row.JSONKind})
	for _, format := range dateFormats() {
		candidates = append(candidates, row.Field{Kind: row.DateKind, Format: format})
	}
	for _, format := range []string{"", "yyyy-MM-dd HH:mm", "yyyy/MM/dd HH:mm", "yyyy/MM/dd HH:mm:ss", "dd.MM.yyyy HH:mm", "dd.MM.yyyy HH:mm:ss"} {
		candidates = append(candidates, row.Field{Kind: row.Timestamp, Format: format})
	}
	for _, c := range candidates {
		schema, err := row.NewSchema(withName(c))
		if err != nil { // cannot be: the formats are our own
			continue
		}
		misfits, misfit := 0, ""
		for _, v := range values {
			if !fits(schema.Field(0), v) {
				misfits++
				if !absentTexts.MatchString(v.text) {
					misfit = v.text
				}
			}
		}
		if c.Kind.IsList() && (misfits > words || allEmpty(values)) {
			continue // it is json
		}
		if real := misfits - words; real == 0 || float64(real) <= tolerated*float64(len(values)-words) {
			f.Type, f.Format, f.Misfits, f.Misfit = c.Kind.String(), c.Format, misfits, misfit
			f.Convert = bare > 0 && texts > 0 && misfits < words+texts
			f.number(values)
			f.ambiguous(values)
			return
		}
	}
	f.Convert = bare > 0
}

// allEmpty reports whether no array has an element.
func allEmpty(values []value) bool {
	for _, v := range values {
		if text := strings.TrimSpace(v.text); strings.HasPrefix(text, "[") && strings.Trim(text, "[] \t\n") != "" {
			return false
		}
	}
	return true
}

func withName(f row.Field) row.Field {
	f.Name = "value"
	return f
}

// fits reports whether the value is one of the field's type, and would be the same text again.
func fits(f *row.Field, v value) bool {
	text := strings.TrimSpace(v.text)
	if f.Kind == row.Int || f.Kind == row.Float {
		digits := strings.TrimLeft(text, "-")
		if len(digits) > 1 && digits[0] == '0' && digits[1] != '.' || strings.HasPrefix(text, "+") {
			return false // 007 is a number of something, not a number
		}
	}
	switch {
	case v.bare && (f.Kind == row.DateKind || f.Kind == row.Timestamp),
		f.Kind == row.UUIDKind && !strings.Contains(text, "-"), // 32 digits may be a hash
		f.Kind.IsList() && !strings.HasPrefix(text, "["),
		f.Kind == row.JSONKind && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		return false
	}
	_, err := f.Parse(text)
	return err == nil
}

// number is the one place where numbers become float or decimal: with one number of decimals
// in all of them they are exact.
func (f *Field) number(values []value) {
	if f.Type != "float" {
		return
	}
	scale := -1
	for _, v := range values {
		text := strings.TrimSpace(v.text)
		if absentTexts.MatchString(text) || text == f.Misfit {
			continue
		}
		_, decimals, point := strings.Cut(text, ".")
		if !point || strings.ContainsAny(text, "eE") || scale >= 0 && len(decimals) != scale {
			return
		}
		scale = len(decimals)
	}
	if scale > 0 && scale <= 4 { // more are measured, and not money
		f.Type, f.Scale = "decimal", &scale
	}
}

// ambiguous notes dates whose days and months cannot be told apart.
func (f *Field) ambiguous(values []value) {
	if f.Format != "MM/dd/yyyy" {
		return
	}
	schema, err := row.NewSchema(row.Field{Name: "value", Kind: row.DateKind, Format: "dd/MM/yyyy"})
	if err != nil {
		return
	}
	for _, v := range values {
		if !absentTexts.MatchString(v.text) && !fits(schema.Field(0), v) {
			return
		}
	}
	f.Note = "days and months cannot be told apart in the sample: it may be dd/MM/yyyy"
}

// names makes names of fields: lower case, digits and underscores, each once.
type names map[string]bool

func (n names) of(from string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(from) {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "_") {
			b.WriteByte('_')
		}
	}
	name := strings.TrimRight(b.String(), "_")
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "f_" + name
	}
	unique := name
	for i := 2; n[unique]; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	n[unique] = true
	return unique
}
