package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// source reads the rows of the input like a loop by hand.
type source struct {
	file *os.File
	csv  *csv.Reader
}

func openSource(path string) (*source, error) {
	f, err := os.Open(path) //nolint:gosec // of the driver's own folder
	if err != nil {
		return nil, err
	}
	s := &source{file: f, csv: csv.NewReader(bufio.NewReaderSize(f, 64<<10))}
	s.csv.ReuseRecord = true
	if _, err := s.csv.Read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *source) close() error { return s.file.Close() }

// next returns the fields of the next row, valid until the next call, each a valid value of its type.
func (s *source) next() ([]string, error) { return checked(s.csv.Read()) }

// checked returns the fields of a row after each was parsed as a value of its type.
func checked(fields []string, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	for _, i := range []int{0, 1} {
		if _, err := strconv.ParseInt(fields[i], 10, 64); err != nil {
			return nil, err
		}
	}
	if _, err := time.Parse(time.DateOnly, fields[4]); err != nil {
		return nil, err
	}
	if _, err := strconv.ParseFloat(fields[5], 64); err != nil {
		return nil, err
	}
	return fields, nil
}

func (s *source) sale() (row sale, err error) {
	fields, err := s.csv.Read()
	if err != nil {
		return row, err
	}
	var errs [4]error
	row.ID, errs[0] = strconv.ParseInt(fields[0], 10, 64)
	row.Account, errs[1] = strconv.ParseInt(fields[1], 10, 64)
	row.Name, row.City = fields[2], fields[3]
	row.Day, errs[2] = time.Parse(time.DateOnly, fields[4])
	row.Amount, errs[3] = strconv.ParseFloat(fields[5], 64)
	return row, errors.Join(errs[:]...)
}

// sales fills rows with the next n; io.EOF after the last one.
func (s *source) sales(rows *[]sale, n int) error {
	*rows = (*rows)[:0]
	for len(*rows) < n {
		row, err := s.sale()
		if err != nil {
			return err
		}
		*rows = append(*rows, row)
	}
	return nil
}

type encoded struct {
	text []byte
	rows int
}

// texts appends the next row with its fields as a format writes them.
func texts(next func() ([]string, error), appendRow func(dst []byte, fields []string) []byte) func(dst []byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) {
		fields, err := next()
		if err != nil {
			return dst, err
		}
		return appendRow(dst, fields), nil
	}
}

// encode fills e with the next n rows.
func (e *encoded) encode(n int, appendNext func(dst []byte) ([]byte, error)) (err error) {
	for e.text, e.rows = e.text[:0], 0; e.rows < n; e.rows++ {
		if e.text, err = appendNext(e.text); err != nil {
			return err
		}
	}
	return nil
}

// eachEncoded passes the rows to write, n at a time.
func eachEncoded(n int, ahead bool, appendNext func(dst []byte) ([]byte, error), write func(*encoded) error) error {
	return inTurns(ahead, func(e *encoded) error { return e.encode(n, appendNext) }, func(e *encoded) error {
		if e.rows == 0 {
			return nil
		}
		return write(e)
	})
}

// inTurns fills and writes until fill returns io.EOF. With ahead the next part
// is filled in a second goroutine while one is written.
func inTurns[T any](ahead bool, fill, write func(*T) error) error {
	if !ahead {
		for part := new(T); ; {
			ended := fill(part)
			if ended != nil && !errors.Is(ended, io.EOF) {
				return ended
			}
			if err := write(part); err != nil || ended != nil {
				return err
			}
		}
	}
	type filled struct {
		part  *T
		ended error
	}
	full, empty, stop := make(chan filled), make(chan *T, 2), make(chan struct{})
	defer close(stop)
	empty <- new(T)
	empty <- new(T)
	go func() {
		for part := range empty {
			ended := fill(part)
			select {
			case full <- filled{part, ended}:
			case <-stop:
				return
			}
			if ended != nil {
				return
			}
		}
	}()
	for {
		next := <-full
		if next.ended != nil && !errors.Is(next.ended, io.EOF) {
			return next.ended
		}
		if err := write(next.part); err != nil || next.ended != nil {
			return err
		}
		empty <- next.part
	}
}

func appendCopyRow(dst []byte, fields []string) []byte {
	for i, f := range fields {
		if i > 0 {
			dst = append(dst, '\t')
		}
		for j := range len(f) {
			switch c := f[j]; c {
			case '\\':
				dst = append(dst, `\\`...)
			case '\t':
				dst = append(dst, `\t`...)
			case '\n':
				dst = append(dst, `\n`...)
			case '\r':
				dst = append(dst, `\r`...)
			default:
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '\n')
}

func timed(work func() error) (Result, error) {
	begin := time.Now()
	if err := work(); err != nil {
		return Result{}, fmt.Errorf("loop: %w", err)
	}
	return Result{Seconds: time.Since(begin).Seconds()}, nil
}
