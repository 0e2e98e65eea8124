package draft

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/nearest"
)

const (
	formatCSV   = "csv"
	formatJSON  = "json"
	formatLines = "jsonl"
	formatTable = "table"
)

// MaxBytes (csv, as UTF-8 and decompressed) and MaxJSON bound the read bytes: unlike a time,
// bytes give the same result on each machine.
const (
	MaxBytes = 64 << 20
	MaxJSON  = 32 << 20
)

// Options configures how a file is read.
type Options struct {
	// Rows is the number of rows to read; 0 means as many as MaxBytes allows.
	Rows int
	// Encoding empty means UTF-8 or the encoding of a byte order mark; Delimiter empty means
	// detected.
	Delimiter, Encoding string
	// NoHeader: the first record is data. LazyQuotes: quotes in a field are text.
	NoHeader, LazyQuotes bool
	SkipLines            int
	Header               bool
	AllText              bool
	// Types by name, column or key are job file types, such as "int null" or
	// "date:dd/MM/yyyy".
	Types map[string]string
	Whole bool
}

// Shape describes a sample of a file, or a table in a database's catalog.
type Shape struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	// Key are the fields that order the reading; empty if the catalog has no key.
	Table      string   `json:"table,omitempty"`
	Database   string   `json:"database,omitempty"`
	Key        []string `json:"key,omitempty"`
	Delimiter  string   `json:"delimiter,omitempty"`
	Items      string   `json:"items,omitempty"`
	Encoding   string   `json:"encoding,omitempty"`
	NoHeader   bool     `json:"no_header,omitempty"`
	LazyQuotes bool     `json:"lazy_quotes,omitempty"`
	SkipLines  int      `json:"skip_lines,omitempty"`
	// Rows is the number of rows in the sample, 0 for a table; Whole means that the file has no
	// more.
	Rows   int      `json:"rows"`
	Whole  bool     `json:"whole"`
	Fields []Field  `json:"fields"`
	Lists  []string `json:"lists,omitempty"`
	Notes  []string `json:"notes,omitempty"`

	options Options
	head    string   // of a csv file
	first   []string // the texts of the first records
	broken  misfits  // records that the reader refuses
	doubt   string   // why the header may be data; empty if it is not in doubt
}

// Field describes a field of the sample.
type Field struct {
	Name     string `json:"name"`
	From     string `json:"from,omitempty"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Optional bool   `json:"optional,omitempty"`
	// Convert means that values have several forms, Exact that no text may change.
	Format           string `json:"format,omitempty"`
	DecimalSeparator string `json:"decimal_separator,omitempty"`
	Scale            *int   `json:"scale,omitempty"`
	Convert          bool   `json:"convert,omitempty"`
	Exact            bool   `json:"exact,omitempty"`
	Nulls            int    `json:"nulls"`
	Misfits          int    `json:"misfits"`
	Misfit           string `json:"misfit,omitempty"`
	Longest          int    `json:"longest"`
	Note             string `json:"note,omitempty"`

	asked bool // its type was requested
}

type misfits struct {
	count int
	first string
}

func (m *misfits) add(err error) {
	if m.count++; m.count == 1 {
		m.first = err.Error()
	}
}

// Infer reads the beginning of a file with the reader of a job. The narrowest type wins that
// returns every seen text unchanged (row.Field.Returns).
func Infer(ctx context.Context, path string, o Options) (*Shape, error) {
	s := &Shape{Path: path, options: o, Encoding: o.Encoding, NoHeader: o.NoHeader, LazyQuotes: o.LazyQuotes, SkipLines: o.SkipLines, Delimiter: o.Delimiter}
	var err error
	if s.Format, err = formatOf(path); err != nil {
		return nil, err
	}
	if s.Format != formatCSV && (o.Delimiter != "" || o.NoHeader || o.Header || o.LazyQuotes || o.SkipLines > 0) {
		return nil, fmt.Errorf("%s: a delimiter, a header, quotes and lines to skip are for csv, but this is %s", path, s.Format)
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
	if err := o.checkTypes(columns); err != nil {
		return nil, named(path, err)
	}
	s.doubtHeader(columns)
	for _, c := range columns {
		s.Fields = append(s.Fields, c.result(s))
	}
	if s.broken.count > 0 {
		s.note("%s %s invalid: %s", humanize.Count(s.broken.count), plural(s.broken.count, "record is", "records are"), s.broken.first)
	}
	return s, nil
}

func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

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

func (s *Shape) isRead(offset int64) bool {
	if s.options.Rows > 0 {
		return s.Rows >= s.options.Rows
	}
	if s.Format != formatCSV {
		return offset >= MaxJSON
	}
	return offset >= MaxBytes
}

const sampleRows = 3

func (s *Shape) keep(text func() string) {
	if len(s.first) < sampleRows {
		s.first = append(s.first, strings.Clone(text()))
	}
}

func (s *Shape) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func (o Options) checkTypes(columns []*column) error {
	var errs []error
	for name := range o.Types {
		if slices.ContainsFunc(columns, func(c *column) bool { return c.asked == name }) {
			continue
		}
		var all []string
		for _, c := range columns {
			all = append(all, c.name)
		}
		errs = append(errs, fmt.Errorf("it has no field %s, for which a type was given%s", name, nearest.Hint(name, all)))
	}
	return errors.Join(errs...)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
