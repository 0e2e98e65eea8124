// Command peers is the loop of workload w3 with the SQLite that is written in C. It is a separate module, so
// that Surfin itself needs no C compiler and no such driver. The driver in bench/driver builds and runs it
// with -peers, and passes it the work.
//
// It imports the standard library, and mattn's driver.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver
)

type work struct {
	Dir   string `json:"dir"`
	Input string `json:"input"`
}

func main() {
	seconds, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("{\"seconds\": %f}\n", seconds)
}

func run() (float64, error) {
	var w work
	if err := json.Unmarshal([]byte(os.Getenv("SURFIN_BENCH_WORK")), &w); err != nil {
		return 0, fmt.Errorf("SURFIN_BENCH_WORK: %w", err)
	}
	if len(os.Args) != 2 {
		return 0, errors.New("the size of a chunk is lacking")
	}
	chunk, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return 0, err
	}
	return load(context.Background(), w, chunk)
}

const perStatement = 64

// load writes the rows chunk by chunk, each with its position in one durable
// commit.
func load(ctx context.Context, w work, chunk int) (seconds float64, err error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.Dir, "surfin.db")+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	full, err := db.PrepareContext(ctx, insertOf(perStatement))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, full.Close()) }()
	begin := time.Now()
	f, err := os.Open(w.Input)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := csv.NewReader(bufio.NewReaderSize(f, 64<<10))
	in.ReuseRecord = true
	if _, err := in.Read(); err != nil {
		return 0, err
	}
	read := 0
	for ended := false; !ended; {
		rows, err := nextRows(in, chunk)
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return 0, err
		}
		read += len(rows)
		if err := write(ctx, db, full, rows, read); err != nil {
			return 0, err
		}
	}
	return time.Since(begin).Seconds(), nil
}

// nextRows reads up to n rows as values of their types.
func nextRows(in *csv.Reader, n int) (rows [][6]any, err error) {
	for len(rows) < n {
		fields, err := in.Read()
		if err != nil {
			return rows, err
		}
		id, err1 := strconv.ParseInt(fields[0], 10, 64)
		account, err2 := strconv.ParseInt(fields[1], 10, 64)
		day, err3 := time.Parse(time.DateOnly, fields[4])
		amount, err4 := strconv.ParseFloat(fields[5], 64)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return rows, err
		}
		rows = append(rows, [6]any{id, account, fields[2], fields[3], day.Format(time.DateOnly), amount})
	}
	return rows, nil
}

func write(ctx context.Context, db *sql.DB, full *sql.Stmt, rows [][6]any, read int) error {
	if len(rows) == 0 {
		return nil
	}
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback() // after a commit it does nothing
	args := make([]any, 0, 6*perStatement)
	for len(rows) > 0 {
		n := min(len(rows), perStatement)
		args = args[:0]
		for _, r := range rows[:n] {
			args = append(args, r[:]...)
		}
		if n == perStatement {
			_, err = t.StmtContext(ctx, full).ExecContext(ctx, args...)
		} else {
			_, err = t.ExecContext(ctx, insertOf(n), args...)
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	if _, err := t.ExecContext(ctx, "UPDATE position SET read = ? WHERE id = 1", read); err != nil {
		return err
	}
	return t.Commit()
}

func insertOf(rows int) string {
	return "INSERT INTO sale VALUES " + strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", rows), ",")
}
