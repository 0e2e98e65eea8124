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
		words := make([]string, len(f.NullIf))
		for i, w := range f.NullIf {
			words[i] = scalar(w)
		}
		add("null_if", "["+strings.Join(words, ", ")+"]")
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

// reader is the reader of the file in a job: path and item are YAML.
func (s *Shape) reader(path, item string) string {
	more := ""
	if s.Delimiter != "" && s.Delimiter != "," {
		more += ", delimiter: " + scalar(s.Delimiter)
	}
	if s.Items != "" {
		more += ", items: " + scalar(s.Items)
	}
	return fmt.Sprintf("{%s: {path: %s%s, item: %s}}", s.Format, path, more, item)
}

// tolerance is the limit of skips that a drafted job has.
const tolerance = 1000

// Copy returns a job that copies the file to a table, or to a file of the format of its name.
func (s *Shape) Copy(table, file string) (string, error) {
	writer := fmt.Sprintf("{table: {name: %s, create: true}}", scalar(table))
	if file != "" {
		format := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(file, ".gz")), ".")
		switch format {
		case "csv", "json", "jsonl":
		default:
			return "", fmt.Errorf("%s: what is written is not known by its name (allowed: .csv, .json, .jsonl, each with .gz)", file)
		}
		writer = fmt.Sprintf("{%s: {path: %s}}", format, scalar(file))
	}
	return "# " + s.Summary() + "\njob: copy\nflow:\n- step: copy\n  chunk:\n    reader: " + s.reader(scalar(s.Path), "row") +
		"\n    writer: " + writer + fmt.Sprintf("\n    skip: %d\n", tolerance) + "types:\n  row:\n" + s.Item("    "), nil
}

// File is a file of a draft; Path is relative to its folder, with slashes.
type File struct{ Path, Text string }

// Start returns the files with which a person starts: the job, its migration and a test.
// input is the path of the data from the folder of the job.
func (s *Shape) Start(input string) []File {
	name := names{}.of(strings.SplitN(filepath.Base(s.Path), ".", 2)[0])
	var columns []string
	for i := range s.Fields {
		f := &s.Fields[i]
		column := "\t\"" + f.Name + "\" " + columnType(f)
		if !f.Nullable {
			column += " not null"
		}
		columns = append(columns, column)
	}
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
    reader: %[6]s
    writer: {table: %[1]s}
    skip: %[7]d
`, name, s.Summary(), filepath.Base(s.Path), scalar(input), s.Item("    "), s.reader(`"${params.input}"`, name), tolerance)
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
		{"migrations/000001_" + name + ".up.sql", "-- The same SQL for SQLite and PostgreSQL.\ncreate table " + name + " (\n" + strings.Join(columns, ",\n") + "\n);\n"},
		{"migrations/000001_" + name + ".down.sql", "drop table " + name + ";\n"},
		{name + "_test.yaml", test},
	}
}

func columnType(f *Field) string {
	switch f.Type {
	case "int":
		return "bigint"
	case "float":
		return "double precision"
	case "decimal":
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
		from := f.From
		if from == "" {
			from = f.Name
		}
		v, ok := r.values[from]
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
