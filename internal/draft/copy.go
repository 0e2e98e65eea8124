package draft

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// CopyJob is the name of the job that Copy drafts.
const CopyJob = "copy"

// Target is the target of a copy: a file, or a table of a database.
type Target struct {
	// File is the path of a file; its name sets the format. Empty means a table.
	File  string
	Table string
	// Database is the name of the table's database; empty means the default one.
	Database string
	Mode     string
	Key      []string
	Append   bool
	// Skip is the number of misfit rows that may be skipped.
	Skip int
	// Parallel is the number of parts that are copied at once; 0 means one, without partitions.
	Parallel int
}

// Sides identify a copy: parameters of its job, by which a failed copy is found again.
type Sides struct{ From, To string }

// Copy returns a job that copies to a table, or to a file.
func (s *Shape) Copy(to Target, sides Sides) (string, error) {
	writer, err := s.writer(to)
	if err = errors.Join(err, s.sure()); err != nil {
		return "", err
	}
	path := ""
	from := "{type: string, default: " + scalar(sides.From) + "}"
	if s.Format != formatTable {
		path, from = `"${params.from}"`, "{type: path, default: "+scalar(s.Path)+"}"
	}
	into := "{type: string, default: " + scalar(sides.To) + "}"
	if to.File != "" {
		into = "{type: path, default: " + scalar(to.File) + "}"
	}
	if !s.Whole {
		s = s.exact()
	}
	parts, err := partition(s, to)
	if err != nil {
		return "", err
	}
	skip, expect := "", ""
	if to.Skip > 0 {
		skip, expect = fmt.Sprintf("    skip: %d\n", to.Skip), "expect: steps.copy.skipped == 0 # else rows are missing\n"
	}
	return "# " + s.Summary() + "\n" + s.Comments() + "job: " + CopyJob +
		"\nparameters: # they identify the copy: a failed one resumes where it was\n  from: " + from + "\n  to: " + into +
		"\nflow:\n- step: copy\n" + parts + "  chunk:\n    reader:" + s.reader(path, "row", "      ") +
		"\n    writer: " + writer + "\n" + skip + expect + "types:\n  row:\n" + s.Item("    "), nil
}

func partition(s *Shape, to Target) (string, error) {
	if to.Parallel < 2 {
		return "", nil
	}
	if s.Format != formatCSV && s.Format != formatLines || strings.HasSuffix(to.File, ".json") {
		return "", errors.New("--parallel divides a csv or jsonl file, and writes a table, csv or jsonl")
	}
	if err := filestream.CheckDivisible(s.Path, "", ""); err != nil {
		return "", fmt.Errorf("--parallel: %w", errors.Unwrap(err))
	}
	return fmt.Sprintf("  partition: {by: {lines: %[1]d}, workers: %[1]d}\n", to.Parallel), nil
}

func (s *Shape) writer(to Target) (string, error) {
	if to.File != "" {
		format, err := fileFormat(to.File)
		more := s.keys(format)
		if to.Append {
			more = ", append: true"
		}
		if to.Parallel > 1 {
			more += ", together: true"
		}
		return fmt.Sprintf(`{%s: {path: "${params.to}"%s}}`, format, more), err
	}
	more := ""
	if s.Format == formatTable && slices.ContainsFunc(s.Fields, func(f Field) bool { return f.From != "" }) {
		columns := make([]string, len(s.Fields)) // the source's
		for i := range s.Fields {
			columns[i] = scalar(s.Fields[i].source()) + ": " + s.Fields[i].Name
		}
		more = ", columns: {" + strings.Join(columns, ", ") + "}"
	}
	if to.Mode != "" {
		more += ", mode: " + to.Mode
	}
	if len(to.Key) > 0 {
		key, err := s.columnsOf(to.Key)
		if err != nil {
			return "", err
		}
		more += ", key: " + list(key)
	} else if len(s.Key) > 0 {
		key := make([]string, len(s.Key))
		for i, name := range s.Key {
			key[i] = name
			if more != "" {
				key[i] = s.Fields[slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })].source()
			}
		}
		more += ", key: " + list(key)
	}
	if to.Database != "" {
		more += ", database: " + to.Database
	}
	return fmt.Sprintf("{table: {name: %s, create: true%s}}", scalar(to.Table), more), nil
}

// keys returns the keys of a JSON file if a field has a key in brackets, such as ["a.b"]: without
// this the brackets would become a part of the key.
func (s *Shape) keys(format string) string {
	inBrackets := func(f Field) bool { return strings.HasPrefix(f.From, `["`) }
	if format == formatCSV || s.Format != formatJSON && s.Format != formatLines || !s.options.Whole || !slices.ContainsFunc(s.Fields, inBrackets) {
		return ""
	}
	keys := make([]string, len(s.Fields))
	for i := range s.Fields {
		keys[i] = jsonText(s.Fields[i].source()) + ": " + s.Fields[i].Name
	}
	return ", keys: {" + strings.Join(keys, ", ") + "}"
}

func (s *Shape) columnsOf(names []string) (columns []string, err error) {
	for _, name := range names {
		at := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
		if at < 0 {
			at = slices.IndexFunc(s.Fields, func(f Field) bool { return f.source() == name })
		}
		if at < 0 {
			var all []string
			for i := range s.Fields {
				all = append(all, s.Fields[i].Name)
			}
			return nil, fmt.Errorf("%s has no field %s%s", s.Path, name, nearest.Hint(name, all))
		}
		if s.Format == formatTable {
			columns = append(columns, s.Fields[at].source())
		} else {
			columns = append(columns, s.Fields[at].Name)
		}
	}
	return columns, nil
}

func fileFormat(file string) (string, error) {
	format := strings.TrimPrefix(filepath.Ext(filestream.WithoutSuffix(file)), ".")
	switch format {
	case "csv", "json", "jsonl":
		return format, nil
	}
	return "", fmt.Errorf("%s: its format is not known by its name (allowed: .csv, .json, .jsonl, each with .gz or .zst, and table:NAME)", file)
}

func (s *Shape) export() ([]File, error) {
	name := names{}.of(s.Table)
	job := fmt.Sprintf(`# surfin run %[1]s.yaml
# %[2]s
job: %[1]s
description: Writes the table %[3]s to a file.

parameters:
  output: {type: path, default: %[1]s.csv}

types:
  %[1]s:
%[4]s
flow:
- step: export
  chunk:
    reader:%[5]s
    writer: {csv: {path: "${params.output}"}}
`, name, s.Summary(), s.Table, s.Item("    "), s.reader("", name, "      "))
	files := []File{{name + ".yaml", job}}
	if s.Database != "" {
		return files, nil // a test has the default database only
	}
	create := s.createTable(quoted(strings.Split(s.Table, ".")...), "      ")
	test := fmt.Sprintf(`# surfin test %[1]s_test.yaml
job: %[1]s.yaml
tests:
- name: the rows of the table are in the file
  sql: |
    %[2]s
  tables:
    %[3]s: [{%[4]s}]
  expect:
    steps: {export: {read: 1, written: 1, skipped: 0}}
`, name, create, scalar(s.Table), strings.Join(s.made(), ", "))
	return append(files, File{name + "_test.yaml", test}), nil
}

func (s *Shape) made() []string {
	values := make([]string, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		values[i] = jsonText(f.source()) + ": " + f.example()
	}
	return values
}

func (f *Field) example() string {
	kind, _ := row.KindByName(f.Type)
	if elem, ok := kind.Elem(); ok {
		of := Field{Type: elem.String(), Scale: f.Scale}
		if elem == row.Int || elem == row.Float || elem == row.Bool || elem == row.DecimalKind {
			return "'[" + of.example() + "]'"
		}
		return `'["` + of.example() + `"]'`
	}
	switch kind {
	case row.Int:
		return "1"
	case row.Float:
		return "1.5"
	case row.DecimalKind:
		if f.Scale != nil && *f.Scale > 0 {
			return "1." + strings.Repeat("0", *f.Scale-1) + "5"
		}
		return "1"
	case row.Bool:
		return "true"
	case row.DateKind:
		return "2026-01-02"
	case row.Timestamp:
		return "2026-01-02T03:04:05Z"
	case row.UUIDKind:
		return "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
	case row.JSONKind:
		return `'{"a": 1}'`
	case row.BytesKind:
		return "AQI="
	case row.String, row.Null:
	}
	return "text"
}
