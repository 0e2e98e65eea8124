package draft

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/jsontext"
)

// record is one row of a sample: its values by name, and its text in the file.
type record struct {
	values map[string]value
	text   string
}

// Infer reads up to so many rows of a file (0: DefaultRows) and says what they have.
func Infer(ctx context.Context, path string, rows int) (*Shape, error) {
	if rows <= 0 {
		rows = DefaultRows
	}
	s := &Shape{Path: path}
	name := strings.TrimSuffix(filepath.Base(path), ".gz")
	switch filepath.Ext(name) {
	case ".csv", ".tsv", ".txt":
		s.Format = "csv"
	case ".json", ".geojson":
		s.Format = "json"
	case ".jsonl", ".ndjson":
		s.Format = "jsonl"
	default:
		return nil, fmt.Errorf("%s: its format is not known by its name (allowed: .csv, .tsv, .txt, .json, .geojson, .jsonl, .ndjson, each with .gz)", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a sample: %w", err)
	}
	defer func() { _ = file.Close() }() //nolint:errcheck // it was only read
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	buffered := bufio.NewReaderSize(in, 64<<10)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\xEF\xBB\xBF" {
		_, _ = buffered.Discard(3) //nolint:errcheck // it was peeked
	}
	order, err := s.sample(ctx, buffered, rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Rows = len(s.records); s.Rows == 0 {
		return nil, fmt.Errorf("%s: there is no row in it to infer from", path)
	}
	s.fields(order)
	return s, nil
}

// sample reads records, and returns the names of their values in the order of the file.
func (s *Shape) sample(ctx context.Context, in *bufio.Reader, rows int) ([]string, error) {
	switch s.Format {
	case "csv":
		return s.sampleCSV(ctx, in, rows)
	case "jsonl":
		return s.sampleLines(ctx, in, rows)
	}
	return s.sampleArray(ctx, in, rows)
}

func (s *Shape) fields(order []string) {
	given := names{}
	for _, from := range order {
		if s.isParent(from, order) {
			continue
		}
		var values []value
		absent := 0
		for _, r := range s.records {
			if v, ok := r.values[from]; ok {
				values = append(values, v)
			} else {
				absent++
			}
		}
		s.Fields = append(s.Fields, guess(given.of(from), from, values, absent))
	}
}

// isParent reports whether the name is that of an object which is null in some rows.
func (s *Shape) isParent(name string, order []string) bool {
	if !slices.ContainsFunc(order, func(o string) bool { return strings.HasPrefix(o, name+".") }) {
		return false
	}
	for _, r := range s.records {
		if v, ok := r.values[name]; ok && !v.null {
			return false
		}
	}
	return true
}

// sampleCSV reads a csv file with a header; its delimiter is what the header has most of.
func (s *Shape) sampleCSV(ctx context.Context, in *bufio.Reader, rows int) ([]string, error) {
	begin, err := in.Peek(in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	s.Delimiter = ","
	for _, d := range []string{";", "\t", "|"} {
		if bytes.Count(line, []byte(d)) > bytes.Count(line, []byte(s.Delimiter)) {
			s.Delimiter = d
		}
	}
	r := csv.NewReader(in)
	r.Comma, r.FieldsPerRecord = rune(s.Delimiter[0]), -1
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty: a header is expected")
	} else if err != nil {
		return nil, err
	}
	s.head = s.csvLine(header)
	for len(s.records) < rows && ctx.Err() == nil {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			s.Whole = true
			return header, nil
		} else if err != nil {
			return nil, err
		}
		if len(cells) != len(header) {
			continue // an invalid item
		}
		rec := record{values: map[string]value{}, text: s.csvLine(cells)}
		for i, name := range header {
			rec.values[name] = value{text: cells[i]}
		}
		s.records = append(s.records, rec)
	}
	return header, ctx.Err()
}

func (s *Shape) csvLine(cells []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Comma = rune(s.Delimiter[0])
	_ = w.Write(cells) //nolint:errcheck // to memory
	w.Flush()
	return b.String()
}

func (s *Shape) sampleLines(ctx context.Context, in *bufio.Reader, rows int) ([]string, error) {
	o := &order{}
	for len(s.records) < rows && ctx.Err() == nil {
		line, err := in.ReadBytes('\n')
		if doc := bytes.TrimSpace(line); len(doc) > 0 {
			s.add(o, doc) // a broken line is an invalid item
		}
		if errors.Is(err, io.EOF) {
			s.Whole = true
			break
		} else if err != nil {
			return nil, err
		}
	}
	return o.names, ctx.Err()
}

// sampleArray finds the array: the file, or the value of a key of it.
func (s *Shape) sampleArray(ctx context.Context, in *bufio.Reader, rows int) ([]string, error) {
	d := json.NewDecoder(in)
	var first json.RawMessage // of the array under the key
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if token == json.Delim('{') {
		for s.Items == "" {
			if !d.More() {
				return nil, errors.New("no key of its object has an array of objects")
			}
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			if token, err = d.Token(); err != nil {
				return nil, err
			}
			if token == json.Delim('[') && d.More() {
				if err := d.Decode(&first); err != nil {
					return nil, err
				}
				if first[0] == '{' {
					s.Items = fmt.Sprint(key)
					break
				}
			}
			if token == json.Delim('[') || token == json.Delim('{') {
				if err := pass(d); err != nil {
					return nil, err
				}
			}
		}
	} else if token != json.Delim('[') {
		return nil, errors.New("an array, or an object with an array, is expected")
	}
	o := &order{}
	if first != nil {
		s.add(o, first)
	}
	for d.More() && len(s.records) < rows && ctx.Err() == nil {
		var doc json.RawMessage
		if err := d.Decode(&doc); err != nil {
			return nil, err
		}
		s.add(o, doc)
	}
	s.Whole = !d.More()
	return o.names, ctx.Err()
}

// pass reads to the end of the object that was begun.
func pass(d *json.Decoder) error {
	for depth := 1; depth > 0; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return nil
}

// order are names in the order in which they were seen first.
type order struct {
	names []string
	seen  map[string]bool
}

func (o *order) add(name string) {
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	if !o.seen[name] {
		o.seen[name] = true
		o.names = append(o.names, name)
	}
}

// maxFields bounds the fields of a sample: objects may have data as keys.
const maxFields = 300

// add takes an object; anything else is an invalid item.
func (s *Shape) add(o *order, doc []byte) {
	rec := record{values: map[string]value{}, text: string(doc)}
	if !bytes.HasPrefix(doc, []byte("{")) || s.flatten(o, rec.values, "", doc) != nil {
		return
	}
	s.records = append(s.records, rec)
}

// flatten takes the values of an object by their paths.
func (s *Shape) flatten(o *order, into map[string]value, prefix string, doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		path := joinPath(prefix, fmt.Sprint(key))
		if raw[0] == '{' && len(o.names) < maxFields {
			if err := s.flatten(o, into, path, raw); err != nil {
				return err
			}
			continue
		}
		if bytes.HasPrefix(raw, []byte("[{")) && !slices.Contains(s.Lists, path) {
			s.Lists = append(s.Lists, path)
		}
		if o.seen[path] || len(o.names) < maxFields {
			o.add(path)
			into[path] = valueOf(raw)
		}
	}
	return nil
}

func joinPath(prefix, key string) string {
	if strings.ContainsAny(key, `.[]"`) {
		quoted, err := json.Marshal(key)
		if err == nil {
			return prefix + "[" + string(quoted) + "]"
		}
	}
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

func valueOf(raw []byte) value {
	switch raw[0] {
	case 'n':
		return value{null: true}
	case '"':
		text, err := jsontext.Unquote(raw)
		return value{text: text, null: err != nil}
	case '[', '{':
		return value{text: string(raw)}
	}
	return value{text: string(raw), bare: true}
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
