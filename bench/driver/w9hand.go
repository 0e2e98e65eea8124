package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// chunkOfParts is the size of the chunks of w9.
const chunkOfParts = 10_000

func copyPartsName(format string, parts int) string {
	name := []string{"the whole file", "two halves at once"}[parts-1]
	return fmt.Sprintf("COPY loop, double-buffered, %s, %s, %d", format, name, chunkOfParts)
}

// copyParts is the loop of w1 over the parts of a file at once, each with a connection and a position of its own.
func copyParts(format string, parts int) Contestant {
	return inside{name: copyPartsName(format, parts), run: func(ctx context.Context, w Work) (r Result, err error) {
		conns := make([]*pgx.Conn, parts)
		for i := range conns { // before the time begins, as our database is opened
			if conns[i], err = pgx.Connect(ctx, w.URL); err != nil {
				return r, err
			}
			defer func() { err = errors.Join(err, conns[i].Close(ctx)) }()
		}
		return timed(func() error { return copyAtOnce(ctx, conns, formOf(w.Input, format), format) })
	}}
}

func copyAtOnce(ctx context.Context, conns []*pgx.Conn, path, format string) (err error) {
	f, err := os.Open(path) //nolint:gosec // of the driver's own folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sections, err := cut(f, len(conns), format == "csv")
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i, section := range sections {
		go func() {
			failed <- copyRows(ctx, conns[i], rowsOf(section, format), "sale", i+1, chunkOfParts, true)
		}()
	}
	var errs []error
	for range sections {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

// cut divides a file at ends of lines into sections of about the same length, without the line of the header.
func cut(f *os.File, parts int, hasHeader bool) ([]io.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var from int64
	if hasHeader {
		if from, err = lineAfter(f, 0); err != nil {
			return nil, err
		}
	}
	length := (info.Size() - from) / int64(parts)
	sections := make([]io.Reader, parts)
	for i := range sections {
		to := info.Size()
		if i < parts-1 {
			if to, err = lineAfter(f, from+length); err != nil {
				return nil, err
			}
		}
		sections[i], from = io.NewSectionReader(f, from, to-from), to
	}
	return sections, nil
}

// lineAfter returns the offset of the first line that begins after another offset.
func lineAfter(f io.ReaderAt, offset int64) (int64, error) {
	line, err := bufio.NewReader(io.NewSectionReader(f, offset, 1<<20)).ReadSlice('\n')
	return offset + int64(len(line)), err
}

// rowsOf reads the rows of a section. The fields are valid until the next call.
func rowsOf(in io.Reader, format string) func() ([]string, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	if format == "csv" {
		r := csv.NewReader(buffered)
		r.ReuseRecord = true
		return func() ([]string, error) { return checked(r.Read()) }
	}
	parse := fixedFields
	if format == "jsonl" {
		parse = jsonFields
	}
	fields := make([]string, 6)
	return func() ([]string, error) {
		line, err := buffered.ReadSlice('\n')
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		return checked(fields, parse(fields, string(bytes.TrimSuffix(line, []byte("\n")))))
	}
}

// fixedFields takes the columns of a line with the widths of otherForms.
func fixedFields(fields []string, line string) error {
	for i, width := range []int{10, 10, 50, 20, 10, 20} {
		if len(line) < width {
			return fmt.Errorf("a line is too short: field %d has %d of its %d characters", i+1, len(line), width)
		}
		fields[i], line = strings.TrimRight(line[:width], " "), line[width:]
	}
	return nil
}

// jsonFields parses an object whose members are numbers and texts without escapes; encoding/json parses any other.
func jsonFields(fields []string, line string) error {
	if plainFields(fields, line) {
		return nil
	}
	var row struct {
		ID, Account json.Number
		Name, City  string
		Day         string
		Amount      json.Number
	}
	if err := json.Unmarshal([]byte(line), &row); err != nil {
		return err
	}
	copy(fields, []string{row.ID.String(), row.Account.String(), row.Name, row.City, row.Day, row.Amount.String()})
	return nil
}

func plainFields(fields []string, line string) bool {
	clear(fields)
	rest, ok := strings.CutPrefix(line, "{")
	for found := 0; ok; found++ {
		key, value := "", ""
		if key, rest, ok = plainText(rest); !ok {
			break
		}
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), ":"); !ok {
			break
		}
		if rest = strings.TrimLeft(rest, " "); strings.HasPrefix(rest, `"`) {
			value, rest, ok = plainText(rest)
		} else if end := strings.IndexAny(rest, ",} "); end > 0 {
			value, rest = rest[:end], rest[end:]
		}
		at := fieldOf(key)
		if !ok || value == "" || at < 0 || fields[at] != "" {
			break
		}
		fields[at] = value
		if rest = strings.TrimLeft(rest, " "); rest == "}" {
			return found == len(fields)-1
		}
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return false
}

// plainText takes a text in quotes, if it has no escapes.
func plainText(from string) (text, rest string, ok bool) {
	from, ok = strings.CutPrefix(strings.TrimLeft(from, " "), `"`)
	end := strings.IndexByte(from, '"')
	if !ok || end < 0 || strings.IndexByte(from[:end], '\\') >= 0 {
		return "", "", false
	}
	return from[:end], from[end+1:], true
}

func fieldOf(key string) int {
	switch key {
	case "id":
		return 0
	case "account":
		return 1
	case "name":
		return 2
	case "city":
		return 3
	case "day":
		return 4
	case "amount":
		return 5
	}
	return -1
}
