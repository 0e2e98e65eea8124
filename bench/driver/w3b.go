package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func w3b() Workload {
	loop := func(name string, run func(w Work) error) Contestant {
		return inside{name: name, run: func(_ context.Context, w Work) (Result, error) {
			return timed(func() error { return run(w) })
		}}
	}
	contestants := []Contestant{loop("encoding/csv loop", csvLoop), loop("encoding/csv loop, typed", typedLoop)}
	for _, chunk := range []int{1000, 10_000} {
		named := func(name string) string { return fmt.Sprintf("%s, %d", name, chunk) }
		contestants = append(contestants,
			loop(named("loop, an fsync for each chunk"), func(w Work) error { return chunkLoop(w, chunk, true, false) }),
			loop(named("the same, double-buffered"), func(w Work) error { return chunkLoop(w, chunk, true, true) }),
			inside{name: typedWithPosition(chunk), run: func(ctx context.Context, w Work) (Result, error) { return positionLoop(ctx, w, chunk) }},
			oursOnFile(named("rows"), copyJob(chunk, "item: "+rowItem, "")),
			oursOnFile(named("structs"), copyJob(chunk, "item: sale", "")),
			oursOnFile(named("strings"), copyJob(chunk, "", "")),
		)
		contestants = append(contestants, springs("copy", chunk)...)
		if readsAhead() {
			contestants = append(contestants, oursOnFile(named("rows, read_ahead false"), copyJob(chunk, "item: "+rowItem, "false")))
		}
	}
	contestants = append(contestants, loop("loop, double-buffered, 1000", func(w Work) error { return chunkLoop(w, 1000, false, true) }))
	return Workload{
		Name: "w3b", Title: "csv to csv", Share: 2, Contestants: contestants,
		Prepare: func(ctx context.Context, b *bench, w *Work) error {
			if !b.peers {
				return nil
			}
			return withHistory(ctx, b, w) // the JobRepository of Spring Batch; ours is a file
		},
		Check: func(_ context.Context, w Work, _ Result) error { return checkFile(outputOf(w), w) },
	}
}

func outputOf(w Work) string { return filepath.Join(w.Dir, "out.csv") }

func copyJob(chunk int, item, readAhead string) string {
	if item != "" {
		item = ", " + item
	}
	text := fmt.Sprintf("job: copy\n"+jobParameters+"flow:\n- step: copy\n  chunk:\n    size: %d\n    reader: {csv: {path: \"${params.input}\"%s}}\n    writer: {csv: out.csv}\n", chunk, item)
	if readAhead != "" {
		text += "    read_ahead: " + readAhead + "\n"
	}
	return text + expectRows
}

func csvLoop(w Work) (err error) {
	in, err := os.Open(w.Input)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(outputOf(w))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	from, to := csv.NewReader(bufio.NewReaderSize(in, 64<<10)), csv.NewWriter(bufio.NewWriterSize(out, 64<<10))
	from.ReuseRecord = true
	for {
		fields, err := from.Read()
		if errors.Is(err, io.EOF) {
			to.Flush()
			return to.Error()
		}
		if err != nil {
			return err
		}
		if err := to.Write(fields); err != nil {
			return err
		}
	}
}

// copied opens the input after its header, and makes the output with one, for a loop.
func copied(w Work, loop func(in *source, out *os.File) error) (err error) {
	in, err := openSource(w.Input)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	out, err := os.Create(outputOf(w))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.WriteString(out, header+"\n"); err != nil {
		return err
	}
	return loop(in, out)
}

// typedLoop is csvLoop with a value for each field, which is parsed, and
// written again.
func typedLoop(w Work) error {
	return copied(w, func(in *source, out *os.File) error {
		to, line := bufio.NewWriterSize(out, 64<<10), []byte(nil)
		for {
			var err error
			if line, err = in.typed(line[:0]); errors.Is(err, io.EOF) {
				return to.Flush()
			}
			if err != nil {
				return err
			}
			if _, err := to.Write(line); err != nil {
				return err
			}
		}
	})
}

// typed appends the next row with its values written again.
func (s *source) typed(line []byte) ([]byte, error) {
	row, err := s.sale()
	if err != nil {
		return line, err
	}
	line = strconv.AppendInt(line, row.ID, 10)
	line = strconv.AppendInt(append(line, ','), row.Account, 10)
	line = append(append(append(append(append(line, ','), row.Name...), ','), row.City...), ',')
	line = row.Day.AppendFormat(line, time.DateOnly)
	return append(strconv.AppendFloat(append(line, ','), row.Amount, 'f', -1, 64), '\n'), nil
}

func typedWithPosition(chunk int) string {
	return fmt.Sprintf("typed loop, two flushes a chunk, double-buffered, %d", chunk)
}

// positionLoop is our promise, by hand: values are parsed and written again.
// For each chunk the file is on the disk, and then its position is committed
// in a file of SQLite with the settings of our history. As for ours, that file
// is opened before the time begins.
func positionLoop(ctx context.Context, w Work, chunk int) (r Result, err error) {
	db, err := openSQLite(sqlitePath(w))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, text := range []string{positionTable, "INSERT INTO position VALUES (1, 0)"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return r, err
		}
	}
	update, err := db.PrepareContext(ctx, "UPDATE position SET read = ? WHERE id = 1")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, update.Close()) }()
	read := 0
	return timed(func() error {
		return copied(w, func(in *source, out *os.File) error {
			return eachEncoded(chunk, true, in.typed, func(b *encoded) error {
				if _, err := out.Write(b.text); err != nil {
					return err
				}
				if err := out.Sync(); err != nil {
					return err
				}
				read += b.rows
				_, err := update.ExecContext(ctx, read) // a transaction of its own
				return err
			})
		})
	})
}

// chunkLoop writes chunk by chunk, with an fsync after each if durable is set.
func chunkLoop(w Work, chunk int, durable, ahead bool) error {
	return copied(w, func(in *source, out *os.File) error {
		return eachEncoded(chunk, ahead, texts(in.next, appendCSVRow), func(b *encoded) error {
			if _, err := out.Write(b.text); err != nil || !durable {
				return err
			}
			return out.Sync()
		})
	})
}

func appendCSVRow(dst []byte, fields []string) []byte {
	for i, f := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		quoted := false
		for j := range len(f) {
			quoted = quoted || f[j] == ',' || f[j] == '"' || f[j] == '\n' || f[j] == '\r'
		}
		if !quoted {
			dst = append(dst, f...)
			continue
		}
		dst = append(dst, '"')
		for j := range len(f) {
			if f[j] == '"' {
				dst = append(dst, '"')
			}
			dst = append(dst, f[j])
		}
		dst = append(dst, '"')
	}
	return append(dst, '\n')
}
