package draft

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/nearest"
)

// The formats of a Shape.
const (
	formatCSV   = "csv"
	formatJSON  = "json"
	formatLines = "jsonl"
	formatTable = "table"
)

// MaxBytes is how much of a csv file is looked at, as UTF-8 and decompressed, and MaxJSON how much of
// JSON: about a second's work. A bound in bytes, and not in time, gives the same answer on each
// machine.
const (
	MaxBytes = 64 << 20
	MaxJSON  = 32 << 20
)

// Options says how a file is read, and what is known of it already. The zero Options is a file about
// which nothing is known.
type Options struct {
	// Rows is how many rows are looked at; 0: what MaxBytes has.
	Rows int
	// Delimiter and Encoding are those of the readers; empty: found out, and UTF-8 or what a byte order
	// mark says.
	Delimiter, Encoding string
	// NoHeader, LazyQuotes and SkipLines are of csv: the first record is data; quotes in a field are
	// text; lines before the header are passed over.
	NoHeader, LazyQuotes bool
	SkipLines            int
	// Header says that the first record of csv has names, though they may be data.
	Header bool
	// AllText makes every field a string.
	AllText bool
	// Types are types of fields by their name, or by that of their column or key: a type of a job
	// file, with a format or a scale after a colon, such as "int null" or "date:dd/MM/yyyy".
	Types map[string]string
	// Whole keeps objects in JSON as json, and does not make fields of their members.
	Whole bool
}

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
	// Encoding is one that was asked for. NoHeader, LazyQuotes and SkipLines are those of Options.
	Encoding   string `json:"encoding,omitempty"`
	NoHeader   bool   `json:"no_header,omitempty"`
	LazyQuotes bool   `json:"lazy_quotes,omitempty"`
	SkipLines  int    `json:"skip_lines,omitempty"`
	// Rows is how many rows the sample has, 0 of a table; Whole says that the file has no more.
	Rows   int     `json:"rows"`
	Whole  bool    `json:"whole"`
	Fields []Field `json:"fields"`
	// Lists are the paths of arrays of objects, which `explode` can make rows of.
	Lists []string `json:"lists,omitempty"`
	// Notes is what a person should know of the file as a whole.
	Notes []string `json:"notes,omitempty"`

	options Options
	head    string   // of a csv file
	first   []string // the texts of the first records
	broken  misfits  // records that the reader refuses
	doubt   string   // why the header may be data; empty: it is none
}

// Field is what the sample says of a field.
type Field struct {
	Name string `json:"name"`
	// From is its name in the file; empty: Name.
	From     string `json:"from,omitempty"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Optional bool   `json:"optional,omitempty"`
	// Format and DecimalSeparator are as in a job file; Scale is that of a decimal. Convert
	// says that values have several forms, and Exact that no text may change.
	Format           string `json:"format,omitempty"`
	DecimalSeparator string `json:"decimal_separator,omitempty"`
	Scale            *int   `json:"scale,omitempty"`
	Convert          bool   `json:"convert,omitempty"`
	Exact            bool   `json:"exact,omitempty"`
	// Nulls and Misfits are rows without a value, and rows whose value is not of a type that was asked
	// for, Misfit being one. Longest is the length of the longest text.
	Nulls   int    `json:"nulls"`
	Misfits int    `json:"misfits"`
	Misfit  string `json:"misfit,omitempty"`
	Longest int    `json:"longest"`
	// Note is what a person should look at.
	Note string `json:"note,omitempty"`

	asked bool // somebody has said its type
}

// misfits counts records, and keeps what is wrong with the first one.
type misfits struct {
	count int
	first string
}

func (m *misfits) add(err error) {
	if m.count++; m.count == 1 {
		m.first = err.Error()
	}
}

// Infer reads a file, or its beginning, with the reader that a job has for it, and says what it has.
// A type is one that returns every text that was seen: read and written again, it is the same text
// (row.Field.Returns). Where several do, the narrowest wins; where none does, the text stays a text.
func Infer(ctx context.Context, path string, o Options) (*Shape, error) {
	s := &Shape{Path: path, options: o, Encoding: o.Encoding, NoHeader: o.NoHeader, LazyQuotes: o.LazyQuotes, SkipLines: o.SkipLines, Delimiter: o.Delimiter}
	var err error
	if s.Format, err = formatOf(path); err != nil {
		return nil, err
	}
	if s.Format != formatCSV && (o.Delimiter != "" || o.NoHeader || o.Header || o.LazyQuotes || o.SkipLines > 0) {
		return nil, fmt.Errorf("%s: a delimiter, a header, quotes and lines to skip are of csv, and this is %s", path, s.Format)
	}
	if err := s.wide(ctx); err != nil {
		return nil, named(path, err)
	}
	var columns []*column
	if s.Format == formatCSV {
		columns, err = s.sampleCSV(ctx)
	} else {
		columns, err = s.sampleJSON(ctx)
	}
	if err != nil {
		return nil, named(path, err)
	}
	if err := s.checkTypes(columns); err != nil {
		return nil, named(path, err)
	}
	s.doubtHeader(columns)
	for _, c := range columns {
		s.Fields = append(s.Fields, c.result(s))
	}
	if s.broken.count > 0 {
		s.note("%s %s invalid: %s", thousands(s.broken.count), plural(s.broken.count, "record is", "records are"), s.broken.first)
	}
	return s, nil
}

// named is the error with the path, unless it has it.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// formatOf is the format of a file by its name.
func formatOf(path string) (string, error) {
	switch strings.ToLower(filepath.Ext(filestream.WithoutSuffix(path))) {
	case ".csv", ".tsv", ".txt":
		return formatCSV, nil
	case ".json", ".geojson":
		return formatJSON, nil
	case ".jsonl", ".ndjson":
		return formatLines, nil
	}
	return "", fmt.Errorf("%s: its format is not known by its name (allowed: .csv, .tsv, .txt, .json, .geojson, .jsonl, .ndjson, each with the suffix of a compression such as .gz)", path)
}

// isRead reports whether enough of the file was seen.
func (s *Shape) isRead(offset int64) bool {
	if s.options.Rows > 0 {
		return s.Rows >= s.options.Rows
	}
	if s.Format != formatCSV {
		return offset >= MaxJSON
	}
	return offset >= MaxBytes
}

// sampleRows is how many rows the test of a draft has.
const sampleRows = 3

// keep notes the text of one of the first records.
func (s *Shape) keep(text func() string) {
	if len(s.first) < sampleRows {
		s.first = append(s.first, strings.Clone(text()))
	}
}

func (s *Shape) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// checkTypes refuses types of fields that the file does not have.
func (s *Shape) checkTypes(columns []*column) error {
	var errs []error
	for name := range s.options.Types {
		if slices.ContainsFunc(columns, func(c *column) bool { return c.asked == name }) {
			continue
		}
		var all []string
		for _, c := range columns {
			all = append(all, c.name)
		}
		errs = append(errs, fmt.Errorf("it has no field %s, of which a type was given%s", name, nearest.Hint(name, all)))
	}
	return errors.Join(errs...)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// thousands is a number as people read it: 30,000.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
