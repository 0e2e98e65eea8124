package draft

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Item returns the fields as in a job file, each on a line with this indent.
func (s *Shape) Item(indent string) string {
	var b strings.Builder
	for i := range s.Fields {
		f := &s.Fields[i]
		b.WriteString(indent + f.Name + ": " + f.spec())
		if note := f.comment(s.Rows); note != "" {
			b.WriteString("  # " + note)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (f *Field) spec() string {
	kind := f.Type
	if f.Nullable {
		kind += " null"
	}
	parts := []string{"type: " + kind}
	add := func(key, text string) { parts = append(parts, key+": "+text) }
	if f.From != "" {
		add("from", scalar(f.From))
	}
	if f.Format != "" {
		add("format", scalar(f.Format))
	}
	if f.Scale != nil {
		add("scale", fmt.Sprint(*f.Scale))
	}
	if f.DecimalSeparator != "" {
		add("decimal_separator", scalar(f.DecimalSeparator))
	}
	if f.Convert {
		add("coerce", "convert")
	}
	if f.Exact {
		add("exact", "true")
	}
	if f.Optional {
		add("optional", "true")
	}
	if len(parts) == 1 {
		return kind
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (f *Field) comment(rows int) string {
	var notes []string
	if f.Misfits > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s do not fit, such as %.30q", humanize.Count(f.Misfits), humanize.Count(rows), f.Misfit))
	}
	if f.Nulls > 0 {
		notes = append(notes, humanize.Count(f.Nulls)+plural(f.Nulls, " null", " nulls"))
	}
	if f.Type == "string" && f.Longest > 0 {
		notes = append(notes, "at most "+humanize.Count(f.Longest)+plural(f.Longest, " character", " characters"))
	}
	if f.Note != "" {
		notes = append(notes, f.Note)
	}
	return strings.Join(notes, "; ")
}

// Summary describes the sample.
func (s *Shape) Summary() string {
	if s.Format == formatTable {
		text := "table " + s.Table + in(s.Database) + fmt.Sprintf(", %d columns", len(s.Fields))
		if len(s.Key) > 0 {
			text += ", key " + strings.Join(s.Key, ", ")
		} else {
			text += ", no key: it is read at once, and a failed copy starts again"
		}
		return text
	}
	text := s.Path + ": " + s.Format
	if s.Delimiter != "" && s.Delimiter != "," {
		text += fmt.Sprintf(", delimiter %q", s.Delimiter)
	}
	if s.Encoding != "" {
		text += ", encoding " + s.Encoding
	}
	if s.Items != "" {
		text += ", the array under " + s.Items
	}
	switch {
	case s.Whole && s.Rows == 0:
		return text + ", no row"
	case s.Whole && s.Rows == 1:
		return text + ", its only row"
	case s.Whole:
		return fmt.Sprintf("%s, all %s rows", text, humanize.Count(s.Rows))
	}
	return fmt.Sprintf("%s, the first %s rows: later ones may differ", text, humanize.Count(s.Rows))
}

func in(database string) string {
	if database == "" {
		return ""
	}
	return " in the database " + database
}

func scalar(text string) string {
	plain := text != "" && strings.Trim(text, " ") == text && !strings.Contains("-0123456789~", text[:1])
	for _, r := range text {
		if !(r == ' ' || r == '_' || r == '.' || r == '/' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			plain = false
		}
	}
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return text
	}
	return jsonText(text)
}

func (s *Shape) reader(path, item, indent string) string {
	if s.Format == formatTable {
		return s.query(item, indent)
	}
	more := ""
	if s.Delimiter != "" && s.Delimiter != "," {
		more += ", delimiter: " + scalar(s.Delimiter)
	}
	if s.NoHeader {
		more += ", header: false"
	}
	if s.SkipLines > 0 {
		more += fmt.Sprintf(", skip_lines: %d", s.SkipLines)
	}
	if s.LazyQuotes {
		more += ", lazy_quotes: true"
	}
	if s.Encoding != "" {
		more += ", encoding: " + scalar(s.Encoding)
	}
	if s.Items != "" {
		more += ", items: " + scalar(s.Items)
	}
	if s.Format != formatCSV || !s.NoHeader {
		more += ", unknown: error"
	}
	return fmt.Sprintf(" {%s: {path: %s%s, item: %s}}", s.Format, path, more, item)
}

func (s *Shape) query(item, indent string) string {
	columns := make([]string, len(s.Fields))
	for i := range s.Fields {
		columns[i] = quoted(s.Fields[i].source())
	}
	along := "key: " + list(s.Key)
	if len(s.Key) == 0 { // a restart begins from the start
		along = "snapshot: true"
	}
	text := "\n" + indent + "query:\n" + indent + "  sql: |\n" +
		indent + "    select " + strings.Join(columns, ", ") + "\n" + indent + "    from " + quoted(strings.Split(s.Table, ".")...) + "\n" +
		indent + "  " + along + "\n" + indent + "  item: " + item
	if s.Database != "" {
		text += "\n" + indent + "  database: " + s.Database
	}
	return text
}

func quoted(parts ...string) string {
	for i, p := range parts {
		parts[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

func list(texts []string) string {
	scalars := make([]string, len(texts))
	for i, t := range texts {
		scalars[i] = scalar(t)
	}
	return "[" + strings.Join(scalars, ", ") + "]"
}

// File is a file of a draft; Path is relative to its folder, with slashes.
type File struct{ Path, Text string }

// Start returns a job, its migration and a test for a file, or an export job for a table. It
// returns an error for a table that no job can read as it is. parallel parts of the file are loaded at once; 0
// and 1 mean no partitions.
func (s *Shape) Start(input string, parallel int) ([]File, error) {
	parts, err := partition(s, Target{Parallel: parallel})
	if err = errors.Join(err, s.sure()); err != nil {
		return nil, err
	}
	if s.Format == formatTable {
		return s.export()
	}
	name := names{}.of(strings.SplitN(filepath.Base(s.Path), ".", 2)[0])
	table := quoted(name)
	files := []File{
		{name + ".yaml", s.startJob(name, input, parts)},
		{"migrations/" + name + "/000001_" + name + ".up.sql", "-- The same SQL for SQLite and PostgreSQL.\n" + s.createTable(table, "\t") + ";\n"},
		{"migrations/" + name + "/000001_" + name + ".down.sql", "drop table " + table + ";\n"},
	}
	sample, ok := s.sampleText()
	if !ok {
		return files, nil
	}
	return append(files, File{name + "_test.yaml", fmt.Sprintf(`# surfin test %[1]s_test.yaml
job: %[1]s.yaml
tests:
- name: the rows of the sample are in the table
  with: [migrations]
  params: {input: %[2]s}
  files:
    %[2]s: %[3]s
  expect:
    steps: {load: {read: %[4]d, written: %[4]d, skipped: 0}}
    queries:
      select count(*) as n from %[5]s: [{n: %[4]d}]
`, name, "sample."+s.Format, sample, len(s.first), table)}), nil
}

func (s *Shape) startJob(name, input, parts string) string {
	return fmt.Sprintf(`# surfin run %[1]s.yaml
# %[2]s
%[8]sjob: %[3]s
description: %[4]s

parameters:
  input: {type: path, default: %[5]s}

types:
  %[3]s: # exact: a text that its type would change, such as 007 as an int, is refused
%[6]s
flow:
- step: schema
  tasklet: {migration: {dir: migrations/%[1]s, table: %[1]s_migrations}}

- step: load
%[9]s  chunk:
    reader:%[7]s
    writer: {table: %[3]s}
`, name, s.Summary(), scalar(name), scalar("Loads "+oneLine(filepath.Base(s.Path))+" into the table "+name+"."), scalar(input), s.exact().Item("    "), s.reader(`"${params.input}"`, scalar(name), "      "), s.Comments(), parts)
}

// Comments returns the notes about the file, each on a line that begins with #.
func (s *Shape) Comments() string {
	text := ""
	for _, list := range s.Lists {
		text += "# " + oneLine(list) + " is an array of objects: explode: " + oneLine(list) + " makes an item of each\n"
	}
	for _, n := range s.Notes {
		text += "# " + oneLine(n) + "\n"
	}
	return text
}

// exact returns the shape with fields that refuse values that they would change: a later file may
// have some.
func (s *Shape) exact() *Shape {
	e := *s
	e.Fields = slices.Clone(s.Fields)
	for i := range e.Fields {
		f := &e.Fields[i]
		isFree := f.Type == row.String.String() || f.Type == row.JSONKind.String() && s.Format != formatCSV
		f.Exact = !isFree && !f.asked
	}
	return &e
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *Shape) createTable(name, indent string) string {
	var columns []string
	for i := range s.Fields {
		f := &s.Fields[i]
		called := f.Name
		if s.Format == formatTable {
			called = f.source()
		}
		column := indent + quoted(called) + " " + columnType(f)
		if !f.Nullable {
			column += " not null"
		}
		columns = append(columns, column)
	}
	return "create table " + name + " (\n" + strings.Join(columns, ",\n") + "\n" + strings.TrimSuffix(indent, "\t") + ")"
}

func columnType(f *Field) string {
	switch f.Type {
	case "int":
		return "bigint"
	case "float":
		return "double precision"
	case "decimal":
		if f.Scale == nil {
			return "decimal"
		}
		return fmt.Sprintf("decimal(30, %d)", *f.Scale)
	case "bool":
		return "boolean"
	case "date":
		return "date"
	case "timestamp":
		return "timestamp"
	case "uuid":
		return "uuid"
	case "json":
		return "jsonb"
	}
	if kind, _ := row.KindByName(f.Type); kind.IsList() { // SQLite has no arrays
		return "jsonb"
	}
	return "text"
}

func (s *Shape) sampleText() (text string, ok bool) {
	switch s.Format {
	case formatCSV:
		text = strings.Repeat("skipped\n", s.SkipLines)
		if !s.NoHeader {
			text += s.head + "\n"
		}
		for _, r := range s.first {
			text += r + "\n"
		}
	case formatLines:
		text = strings.Join(s.first, "\n") + "\n"
	default:
		text = "[" + strings.Join(s.first, ",\n") + "]\n"
		if s.Items != "" {
			keys, err := jsontext.Keys(s.Items)
			if err != nil {
				return "", false
			}
			text = "{" + jsonText(keys[0]) + ": " + text + "}\n"
		}
	}
	isASCII := !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
	return jsonText(text), s.Encoding == "" || s.Encoding == "utf-8" || isASCII && !strings.HasPrefix(s.Encoding, "utf")
}

func jsonText(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // a string has a JSON form
		return `""`
	}
	return string(quoted)
}
