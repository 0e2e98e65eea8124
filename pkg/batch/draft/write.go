package draft

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Item returns the fields as a job file has them, each on a line with this indent.
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

// spec is the field as a job file has it.
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
	if len(f.NullIf) > 0 {
		add("null_if", list(f.NullIf))
	}
	if f.Convert {
		add("coerce", "convert")
	}
	if f.Optional {
		add("optional", "true")
	}
	if len(parts) == 1 {
		return kind
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// comment says how sure the type is.
func (f *Field) comment(rows int) string {
	var notes []string
	if f.Misfits > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d do not fit, such as %.30q", f.Misfits, rows, f.Misfit))
	}
	if f.Nulls > 0 {
		notes = append(notes, fmt.Sprintf("%d nulls", f.Nulls))
	}
	if f.Type == "string" && f.Longest > 0 {
		notes = append(notes, fmt.Sprintf("at most %d characters", f.Longest))
	}
	if f.Note != "" {
		notes = append(notes, f.Note)
	}
	return strings.Join(notes, "; ")
}

// Summary says what was looked at.
func (s *Shape) Summary() string {
	if s.Format == formatTable {
		text := "table " + s.Table + in(s.Database) + fmt.Sprintf(", %d columns", len(s.Fields))
		if len(s.Key) > 0 {
			text += ", key " + strings.Join(s.Key, ", ")
		}
		return text
	}
	text := s.Path + ": " + s.Format
	if s.Delimiter != "" && s.Delimiter != "," {
		text += fmt.Sprintf(", delimiter %q", s.Delimiter)
	}
	if s.Items != "" {
		text += ", the array under " + s.Items
	}
	if s.Whole {
		return fmt.Sprintf("%s, all %d rows", text, s.Rows)
	}
	return fmt.Sprintf("%s, the first %d rows: later ones may differ", text, s.Rows)
}

// in names a database that is not the default one.
func in(database string) string {
	if database == "" {
		return ""
	}
	return " in the database " + database
}

// scalar is a text as YAML, quoted where it must be.
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
	quoted, err := json.Marshal(text)
	if err != nil { // a string has a JSON form
		return `""`
	}
	return string(quoted)
}

// reader is the value of the key `reader` in a job, with what is between it and the colon: path
// and item are YAML, and indent is that of lines of its own.
func (s *Shape) reader(path, item, indent string) string {
	if s.Format == formatTable {
		return s.query(item, indent)
	}
	more := ""
	if s.Delimiter != "" && s.Delimiter != "," {
		more += ", delimiter: " + scalar(s.Delimiter)
	}
	if s.Items != "" {
		more += ", items: " + scalar(s.Items)
	}
	return fmt.Sprintf(" {%s: {path: %s%s, item: %s}}", s.Format, path, more, item)
}

// query is the reader of a table: all columns, along its key.
func (s *Shape) query(item, indent string) string {
	columns := make([]string, len(s.Fields))
	for i := range s.Fields {
		columns[i] = quoted(s.Fields[i].source())
	}
	text := "\n" + indent + "query:\n" + indent + "  sql: |\n" +
		indent + "    select " + strings.Join(columns, ", ") + "\n" + indent + "    from " + quoted(strings.Split(s.Table, ".")...) + "\n" +
		indent + "  key: " + list(s.Key) + "\n" + indent + "  item: " + item
	if s.Database != "" {
		text += "\n" + indent + "  database: " + s.Database
	}
	return text
}

// quoted is a name in SQL, of its parts.
func quoted(parts ...string) string {
	for i, p := range parts {
		parts[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// list is a list of texts as YAML.
func list(texts []string) string {
	scalars := make([]string, len(texts))
	for i, t := range texts {
		scalars[i] = scalar(t)
	}
	return "[" + strings.Join(scalars, ", ") + "]"
}

// File is a file of a draft; Path is relative to its folder, with slashes.
type File struct{ Path, Text string }

// Start returns the files with which a person starts. Of a file they are a job that loads it,
// its migration and a test; input is the path of the data from the folder of the job. Of a table
// they are a job that exports it, and a test where the table is in the default database. The
// error is about a table that no job can read as it is.
func (s *Shape) Start(input string) ([]File, error) {
	if s.Format == formatTable {
		return s.export()
	}
	name := names{}.of(strings.SplitN(filepath.Base(s.Path), ".", 2)[0])
	job := fmt.Sprintf(`# surfin run %[1]s.yaml
# %[2]s
job: %[1]s
description: Loads %[3]s into the table %[1]s.

parameters:
  input: {type: path, default: %[4]s}

types:
  %[1]s:
%[5]s
flow:
- step: schema
  tasklet: {migration: migrations}

- step: load
  chunk:
    reader:%[6]s
    writer: {table: %[1]s}
    skip: %[7]d
`, name, s.Summary(), filepath.Base(s.Path), scalar(input), s.Item("    "), s.reader(`"${params.input}"`, name, "      "), tolerance)
	sample, n := s.sampleText()
	test := fmt.Sprintf(`# surfin test %[1]s_test.yaml
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
      select count(*) as n from %[1]s: [{n: %[4]d}]
`, name, "sample."+s.Format, sample, n)
	return []File{
		{name + ".yaml", job},
		{"migrations/000001_" + name + ".up.sql", "-- The same SQL for SQLite and PostgreSQL.\n" + s.createTable(name, "\t") + ";\n"},
		{"migrations/000001_" + name + ".down.sql", "drop table " + name + ";\n"},
		{name + "_test.yaml", test},
	}, nil
}

// createTable is the statement that makes a table of the fields, each on a line with this indent.
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

// sampleRows is how many rows the test of a draft has.
const sampleRows = 3

// sampleText is the text of a file of rows that fit, as YAML.
func (s *Shape) sampleText() (text string, n int) {
	var rows []string
	for _, r := range s.records {
		if len(rows) < sampleRows && s.isGood(r) {
			rows = append(rows, r.text)
		}
	}
	switch s.Format {
	case "csv":
		text = s.head + strings.Join(rows, "")
	case "jsonl":
		text = strings.Join(rows, "\n") + "\n"
	default:
		text = "[" + strings.Join(rows, ",\n") + "]\n"
		if s.Items != "" {
			text = "{" + jsonText(s.Items) + ": " + text + "}\n"
		}
	}
	return jsonText(text), len(rows)
}

func jsonText(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // a string has a JSON form
		return `""`
	}
	return string(quoted)
}

// isGood reports whether all values of the row fit, and are there.
func (s *Shape) isGood(r record) bool {
	for i := range s.Fields {
		f := &s.Fields[i]
		v, ok := r.values[f.source()]
		if !ok || v.null {
			if f.Nullable {
				continue
			}
			return false
		}
		kind, _ := row.KindByName(f.Type)
		schema, err := row.NewSchema(row.Field{Name: "value", Kind: kind, Format: f.Format, Nullable: f.Nullable, Nulls: f.NullIf, Scale: f.Scale})
		if err != nil || kind != row.String && !fits(schema.Field(0), v) {
			return false
		}
	}
	return true
}
