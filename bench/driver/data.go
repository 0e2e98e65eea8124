package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// The data is rows of 86 bytes: id,account,name,city,day,amount. Their lines are PostgreSQL's text of the
// stored rows, so that one sum works for files and tables.
const (
	header     = "id,account,name,city,day,amount"
	firstID    = 10_000_000
	textLength = 45
)

func cities() []string {
	return []string{"Frankfurt am Main", "Rome", "New York", "Port of Spain", "Osaka", "Ulm", "Addis Ababa", "San Miguel"}
}

type sale struct {
	ID         int64 `gorm:"primaryKey;autoIncrement:false"`
	Account    int64
	Name, City string
	Day        time.Time `gorm:"type:date"`
	Amount     float64
}

// TableName is the table that gorm writes to.
func (sale) TableName() string { return "sale" }

func salesTable(name string) string {
	return "CREATE TABLE " + name + " (id bigint PRIMARY KEY, account bigint NOT NULL, name text NOT NULL, city text NOT NULL, day date NOT NULL, amount double precision NOT NULL)"
}

// writeSales writes a file of rows, the same for the same seed, and returns the sum of its lines.
func writeSales(path string, rows int, seed uint64) (sum uint64, err error) {
	f, err := os.Create(path) //nolint:gosec // of the driver's own folder
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(out, header)
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // data that can be made again
	towns, first := cities(), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	var line []byte
	for i := range rows {
		city := towns[random.IntN(len(towns))]
		line = strconv.AppendInt(line[:0], int64(firstID+i), 10)
		line = append(line, ',')
		line = strconv.AppendInt(line, 10_000_000+random.Int64N(90_000_000), 10)
		line = append(line, ',')
		for j := range textLength - len(city) {
			letter := byte('a' + random.IntN(26))
			if j == 8 {
				letter = ' '
			}
			line = append(line, letter)
		}
		line = append(line, ',')
		line = append(line, city...)
		line = append(line, ',')
		line = first.AddDate(0, 0, random.IntN(2000)).AppendFormat(line, time.DateOnly)
		cents := 10_000_000 + random.Int64N(89_999_990)
		if cents%10 == 0 {
			cents++ // the shortest text of the float has both places
		}
		line = fmt.Appendf(line, ",%d.%02d", cents/100, cents%100)
		sum += lineSum(line)
		line = append(line, '\n')
		if _, err := out.Write(line); err != nil {
			return 0, err
		}
	}
	return sum, out.Flush()
}

// lineSum is the hash of one line without its end. The sum of a set of lines is the sum of their hashes, in
// any order.
func lineSum(line []byte) uint64 {
	h := fnv.New64a()
	h.Write(line)
	return h.Sum64()
}

type summed struct {
	rows int
	sum  uint64
	rest []byte
}

func (s *summed) Write(text []byte) (int, error) {
	n := len(text)
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			s.rest = append(s.rest, text...)
			return n, nil
		}
		line := text[:end]
		if len(s.rest) > 0 {
			s.rest = append(s.rest, line...)
			line = s.rest
		}
		s.rows++
		s.sum += lineSum(line)
		s.rest, text = s.rest[:0], text[end+1:]
	}
}

func (s *summed) check(w Work) error {
	switch {
	case len(s.rest) > 0:
		return fmt.Errorf("the last line has no end: %q", s.rest)
	case s.rows != w.Rows:
		return fmt.Errorf("%d rows were written, and %d were to be", s.rows, w.Rows)
	case s.sum != w.Sum:
		return fmt.Errorf("the sum of the rows is %x, and should be %x", s.sum, w.Sum)
	}
	return nil
}

func checkFile(path string, w Work) (err error) {
	f, err := os.Open(path) //nolint:gosec // of the driver's own folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReaderSize(f, 1<<20)
	if first, err := in.ReadString('\n'); err != nil || first != header+"\n" {
		return fmt.Errorf("the header is %q: %w", first, err)
	}
	var s summed
	if _, err := io.Copy(&s, in); err != nil {
		return err
	}
	return s.check(w)
}
