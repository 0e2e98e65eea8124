package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/surfin-batch/surfin/pkg/batch"
)

// w1 loads a csv file into an empty table of PostgreSQL, each chunk with its position in
// one durable commit.
func w1() Workload {
	contestants := []Contestant{psql{name: `psql \copy`, command: func(w Work) string {
		return fmt.Sprintf(`\copy sale from '%s' with (format csv, header)`, w.Input)
	}}}
	for _, chunk := range []int{1000, 10_000} {
		contestants = append(contestants, loads(chunk)...)
		contestants = append(contestants, springs("load", chunk)...)
	}
	return Workload{
		Name: "w1", Title: "csv to PostgreSQL, 86 bytes a row, a durable commit for each chunk", Share: 2, Contestants: contestants,
		Prepare: func(ctx context.Context, b *bench, w *Work) error {
			w.URL = b.server.url
			return b.server.template(ctx, w.Workload, salesTable("sale"), positionTable, "INSERT INTO position VALUES (1, 0)")
		},
		Check: func(ctx context.Context, w Work, _ Result) error { return checkTable(ctx, w, "sale") },
	}
}

const positionTable = "CREATE TABLE position (id integer PRIMARY KEY, read bigint NOT NULL)"

const updatePosition = "UPDATE position SET read = $1 WHERE id = $2"

// loads are the contestants of w1 with one size of chunks.
func loads(chunk int) []Contestant {
	named := func(name string) string { return fmt.Sprintf("%s, %d", name, chunk) }
	loop := func(name string, run func(ctx context.Context, conn *pgx.Conn, w Work) error) Contestant {
		return inside{name: named(name), run: func(ctx context.Context, w Work) (Result, error) {
			return timedOn(ctx, w, func(conn *pgx.Conn) error { return run(ctx, conn, w) })
		}}
	}
	all := []Contestant{
		loop("COPY loop", func(ctx context.Context, conn *pgx.Conn, w Work) error { return copyLoop(ctx, conn, w, chunk, false) }),
		loop("COPY loop, double-buffered", func(ctx context.Context, conn *pgx.Conn, w Work) error { return copyLoop(ctx, conn, w, chunk, true) }),
	}
	if chunk <= insertRows { // a larger chunk is as many of these statements
		all = append(all,
			loop("UNNEST loop", func(ctx context.Context, conn *pgx.Conn, w Work) error {
				return saleLoop(ctx, conn, w, chunk, insertUnnested)
			}),
			loop("loop of multi-row VALUES", func(ctx context.Context, conn *pgx.Conn, w Work) error {
				return saleLoop(ctx, conn, w, chunk, insertValues)
			}),
			inside{name: named("gorm CreateInBatches"), run: func(ctx context.Context, w Work) (Result, error) { return gormLoop(ctx, w, chunk) }})
	}
	all = append(all,
		ours(named("rows"), loadJob(chunk, rowItem, "", "")),
		openConsole(named("rows, open console"), loadJob(chunk, rowItem, "", "")),
		ours(named("structs"), loadJob(chunk, "sale", "", "")),
		ours(named("rows, filter and map"), loadJob(chunk, rowItem, "[{filter: item.amount > 0}, {map: {name: trim(item.name)}}]", "")),
		ours(named("structs, a processor"), loadJob(chunk, "sale", "trim_name", ""),
			batch.Processor[saleItem, saleItem]("trim_name", func() trimName { return trimName{} })))
	if readsAhead() {
		all = append(all, ours(named("rows, read_ahead false"), loadJob(chunk, rowItem, "", "false")))
	}
	return all
}

// insertRows is the number of rows in an INSERT of gorm, or in one by hand with a parameter for each value.
const insertRows = 1000

func loadJob(chunk int, item, processor, readAhead string) string {
	text := fmt.Sprintf("job: load\n"+jobParameters+"flow:\n- step: load\n  chunk:\n    size: %d\n    reader: {csv: {path: \"${params.input}\", item: %s}}\n", chunk, item)
	if processor != "" {
		text += "    processor: " + processor + "\n"
	}
	if readAhead != "" {
		text += "    read_ahead: " + readAhead + "\n"
	}
	return text + "    writer: {table: sale}\n" + expectRows
}

type trimName struct{}

func (trimName) Process(_ context.Context, s saleItem) (saleItem, error) {
	s.Name = strings.TrimSpace(s.Name)
	return s, nil
}

// timedOn measures the work of a loop over a connection, which is opened before the time begins, as our
// database is.
func timedOn(ctx context.Context, w Work, work func(conn *pgx.Conn) error) (r Result, err error) {
	conn, err := pgx.Connect(ctx, w.URL)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return timed(func() error { return work(conn) })
}

func copyInto(ctx context.Context, w Work, table string) error {
	_, err := timedOn(ctx, w, func(conn *pgx.Conn) error { return copyChunks(ctx, conn, w, table, w.Rows, false) })
	return err
}

// copyLoop is the work by hand: for each chunk a COPY and an UPDATE in one transaction.
func copyLoop(ctx context.Context, conn *pgx.Conn, w Work, chunk int, ahead bool) error {
	return copyChunks(ctx, conn, w, "sale", chunk, ahead)
}

func copyChunks(ctx context.Context, conn *pgx.Conn, w Work, table string, chunk int, ahead bool) (err error) {
	in, err := openSource(w.Input)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	return copyRows(ctx, conn, in.next, table, 1, chunk, ahead)
}

// copyRows writes rows chunk by chunk, each with its position in one transaction. Position is the number of the
// row that has it.
func copyRows(ctx context.Context, conn *pgx.Conn, next func() ([]string, error), table string, position, chunk int, ahead bool) error {
	read := 0
	return eachEncoded(chunk, ahead, texts(next, appendCopyRow), func(b *encoded) error {
		read += b.rows
		return pgx.BeginFunc(ctx, conn, func(pgx.Tx) error {
			if _, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(b.text), "COPY "+table+" FROM STDIN"); err != nil {
				return err
			}
			_, err := conn.Exec(ctx, updatePosition, read, position)
			return err
		})
	})
}

// saleLoop is the work with structs: for each chunk an insert and an UPDATE in one transaction.
func saleLoop(ctx context.Context, conn *pgx.Conn, w Work, chunk int, insert func(ctx context.Context, tx pgx.Tx, rows []sale) error) error {
	read := 0
	return eachSales(w, chunk, false, func(rows []sale) error {
		read += len(rows)
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := insert(ctx, tx, rows); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, updatePosition, read, 1)
			return err
		})
	})
}

func insertUnnested(ctx context.Context, tx pgx.Tx, rows []sale) error {
	var c saleColumns
	for _, s := range rows {
		c.add(s)
	}
	_, err := tx.Exec(ctx, "INSERT INTO sale "+selectUnnested, c.args()...)
	return err
}

// insertValues is statements with a parameter for each value, 1000 rows in each.
func insertValues(ctx context.Context, tx pgx.Tx, rows []sale) error {
	const columns = 6
	for part := range slices.Chunk(rows, insertRows) {
		text, args := []byte("INSERT INTO sale VALUES "), make([]any, 0, columns*len(part))
		for i, s := range part {
			if i > 0 {
				text = append(text, ',')
			}
			n := i * columns
			text = fmt.Appendf(text, "($%d,$%d,$%d,$%d,$%d,$%d)", n+1, n+2, n+3, n+4, n+5, n+6)
			args = append(args, s.ID, s.Account, s.Name, s.City, s.Day, s.Amount)
		}
		if _, err := tx.Exec(ctx, string(text), args...); err != nil {
			return err
		}
	}
	return nil
}

func gormLoop(ctx context.Context, w Work, chunk int) (r Result, err error) {
	db, err := gorm.Open(postgres.Open(w.URL), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil {
		return r, err
	}
	pool, err := db.DB()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	db = db.WithContext(ctx)
	read := 0
	return timed(func() error {
		return eachSales(w, chunk, false, func(rows []sale) error {
			read += len(rows)
			return db.Transaction(func(tx *gorm.DB) error {
				if err := tx.CreateInBatches(rows, insertRows).Error; err != nil {
					return err
				}
				return tx.Exec("UPDATE position SET read = ? WHERE id = 1", read).Error
			})
		})
	})
}
