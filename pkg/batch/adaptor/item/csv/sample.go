package csv

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
)

// Cell is a field of a record as its text.
type Cell struct {
	Text string
	// Quoted: "" is an empty text, and an empty field without quotes a null.
	Quoted bool
}

// Sample reads the records of a file as the reader does, whatever their types, to draft an item type.
type Sample struct {
	r     *reader
	head  string
	cells []Cell
}

// SampleConfig says how the file is read, with the reader's defaults.
type SampleConfig struct {
	Path, Delimiter      string
	NoHeader, LazyQuotes bool
	SkipLines            int
	Encoding             filestream.EncodingName
}

// OpenSample opens the file at its first record.
func OpenSample(ctx context.Context, sample SampleConfig) (*Sample, error) {
	cfg := readerConfig{
		Path: sample.Path, Delimiter: sample.Delimiter, Header: headerExact, SkipLines: sample.SkipLines, LazyQuotes: sample.LazyQuotes, Encoding: sample.Encoding,
	}
	if sample.NoHeader {
		cfg.Header = headerNone
	}
	made, err := newReader(cfg, nil)
	if err != nil {
		return nil, err
	}
	s := &Sample{r: made.(interface{ Component() any }).Component().(*reader)}
	if err := s.r.openAt(ctx, nil); err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	if err := s.r.readHead(ctx); err != nil {
		_ = s.r.in.Close() //nolint:errcheck // it was only read
		return nil, fmt.Errorf("csv: %w", err)
	}
	if cfg.hasHeader() {
		s.head = s.Text()
	}
	s.r.csv.blanks = len(s.r.columns) == 1
	return s, nil
}

// Columns returns the names of the columns; without a header, one for each field of the first record.
func (s *Sample) Columns() []string { return s.r.columns }

// Head returns the header, or "".
func (s *Sample) Head() string { return s.head }

// Next returns the fields of the next record, valid until the next call. An invalid item is an
// item.ConsumedError.
func (s *Sample) Next(ctx context.Context) ([]Cell, error) {
	record, err := s.r.record(ctx)
	if err != nil {
		return nil, err
	}
	s.cells = s.cells[:0]
	for _, f := range s.r.csv.fields {
		s.cells = append(s.cells, Cell{Text: record[f.from:f.to], Quoted: f.quoted})
	}
	return s.cells, nil
}

// Line returns the line on which the last record begins.
func (s *Sample) Line() int64 { return s.r.line }

// Text returns the text of the last record.
func (s *Sample) Text() string { return s.r.RawText().Text }

// Offset returns how many bytes of the text, as UTF-8, were read.
func (s *Sample) Offset() int64 { return s.r.next }

// Damage returns the first byte of the last record that is not UTF-8, its line and offset.
func (s *Sample) Damage() (found byte, line, offset int64) {
	text := s.r.in.Buffered(s.r.from)[:s.r.next-s.r.from]
	at := 0
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			return text[at], s.r.fromLines + 1 + int64(bytes.Count(text[:at], []byte{'\n'})), s.r.from + int64(at)
		}
		at += n
	}
	return 0, s.r.line, s.r.from
}

// NotValid is a message about text with damage.
func (s *Sample) NotValid() string { return s.r.in.NotValid() }

// Close closes the file.
func (s *Sample) Close(ctx context.Context) error { return s.r.Close(ctx) }
