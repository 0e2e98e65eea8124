package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver that we use
)

// w3 loads a csv file into a table of SQLite, in WAL mode with synchronous=FULL, like ours.
func w3() Workload {
	loop := func(name string, chunk int, ahead bool) Contestant {
		return inside{name: fmt.Sprintf("%s, %d", name, chunk), run: func(ctx context.Context, w Work) (Result, error) {
			return sqliteLoop(ctx, w, chunk, ahead)
		}}
	}
	contestants := []Contestant{loop("loop with our driver", 1000, false)}
	for _, chunk := range []int{1000, 10_000} {
		if chunk != 1000 {
			contestants = append(contestants, loop("loop with our driver", chunk, false))
		}
		contestants = append(contestants,
			loop("loop with our driver, double-buffered", chunk, true),
			ours(fmt.Sprintf("rows, %d", chunk), loadJob(chunk, rowItem, "", "")),
			ours(fmt.Sprintf("structs, %d", chunk), loadJob(chunk, "sale", "", "")))
		if readsAhead() {
			contestants = append(contestants, ours(fmt.Sprintf("rows, read_ahead false, %d", chunk), loadJob(chunk, rowItem, "", "false")))
		}
		contestants = append(contestants, mattn{chunk: chunk})
	}
	return Workload{
		Name: "w3", Title: "csv to SQLite, a durable commit for each chunk", Share: 0.5, Contestants: contestants,
		Prepare: func(ctx context.Context, b *bench, _ *Work) error {
			return makeSQLite(ctx, filepath.Join(b.dir, sqliteTemplate))
		},
		Clear: func(_ context.Context, b *bench, w Work) error {
			text, err := os.ReadFile(filepath.Join(b.dir, sqliteTemplate))
			if err != nil {
				return err
			}
			return os.WriteFile(sqlitePath(w), text, 0o600)
		},
		Check: func(ctx context.Context, w Work, _ Result) error { return checkSQLite(ctx, sqlitePath(w), w) },
	}
}

// sqliteTemplate is the file that every run begins with a copy of.
const sqliteTemplate = "template.db"

func sqlitePath(w Work) string { return filepath.Join(w.Dir, "surfin.db") }

func openSQLite(path string) (*sql.DB, error) {
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// makeSQLite makes a database with the tables of our history, and of the workload.
func makeSQLite(ctx context.Context, path string) (err error) {
	if err := prepareHistory(ctx, "sqlite:"+path); err != nil {
		return err
	}
	db, err := openSQLite(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, text := range []string{salesTable("sale"), positionTable, "INSERT INTO position VALUES (1, 0)", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// sqliteRows is the number of rows in a statement of the loop: more take longer.
const sqliteRows = 64

// sqliteLoop is the work by hand. The file is opened before the time begins,
// as ours is.
func sqliteLoop(ctx context.Context, w Work, chunk int, ahead bool) (r Result, err error) {
	db, err := openSQLite(sqlitePath(w))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	full, err := db.PrepareContext(ctx, insertOf(sqliteRows))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, full.Close()) }()
	read := 0
	return timed(func() error {
		return eachSales(w, chunk, ahead, func(rows []sale) error {
			read += len(rows)
			return sqliteChunk(ctx, db, full, rows, read)
		})
	})
}

// sqliteChunk writes rows and the position after them.
func sqliteChunk(ctx context.Context, db *sql.DB, full *sql.Stmt, rows []sale, read int) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback() //nolint:errcheck // after a commit it does nothing
	args := make([]any, 0, 6*sqliteRows)
	for part := range slices.Chunk(rows, sqliteRows) {
		args = args[:0]
		for _, s := range part {
			args = append(args, s.ID, s.Account, s.Name, s.City, s.Day.Format("2006-01-02"), s.Amount)
		}
		if len(part) == sqliteRows {
			_, err = t.StmtContext(ctx, full).ExecContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
		} else {
			_, err = t.ExecContext(ctx, insertOf(len(part)), args...)
		}
		if err != nil {
			return err
		}
	}
	if _, err := t.ExecContext(ctx, "UPDATE position SET read = ? WHERE id = 1", read); err != nil {
		return err
	}
	return t.Commit()
}

func insertOf(rows int) string {
	return "INSERT INTO sale VALUES " + strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", rows), ",")
}

func eachSales(w Work, chunk int, ahead bool, write func(rows []sale) error) (err error) {
	in, err := openSource(w.Input)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	return inTurns(ahead, func(b *[]sale) error { return in.sales(b, chunk) }, func(b *[]sale) error {
		if len(*b) == 0 {
			return nil
		}
		return write(*b)
	})
}

func checkSQLite(ctx context.Context, path string, w Work) (err error) {
	db, err := openSQLite(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT id, account, name, city, CAST(day AS text), amount FROM sale")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it has only read
	var s summed
	for rows.Next() {
		var id, account int64
		var name, city, day string
		var amount float64
		if err := rows.Scan(&id, &account, &name, &city, &day, &amount); err != nil {
			return err
		}
		fmt.Fprintf(&s, "%d,%d,%s,%s,%s,%s\n", id, account, name, city, day, strconv.FormatFloat(amount, 'f', -1, 64)) //nolint:errcheck // it takes everything
	}
	return errors.Join(rows.Err(), s.check(w))
}

// mattn is the same loop with the SQLite that is written in C, in a separate module.
type mattn struct{ chunk int }

func (c mattn) Name() string { return fmt.Sprintf("loop with mattn (cgo), %d", c.chunk) }

func (c mattn) Restarts() bool { return false }

func (c mattn) Result(stdout []byte) (Result, error) { return parseResult(stdout) }

// Build compiles bench/peers.
func (c mattn) Build(ctx context.Context, b *bench) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("bench", "peers"), "-o", filepath.Join(b.dir, "peers"), ".") //nolint:gosec // of this module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func (c mattn) Command(w Work) (*exec.Cmd, error) {
	cmd, err := withWork(exec.Command(filepath.Join(filepath.Dir(w.Dir), "peers"), strconv.Itoa(c.chunk)), w) //nolint:gosec // built by us
	return cmd, err
}
