package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/pkg/batch"
)

// w2 upserts the rows of a table into another one.
func w2(full bool) Workload {
	w := Workload{Name: "w2-insert", Title: "PostgreSQL to PostgreSQL, upsert into an empty table"}
	fill := []string{}
	if full {
		w.Name, w.Title = "w2-update", "PostgreSQL to PostgreSQL, upsert over rows that are there"
		fill = append(fill, "INSERT INTO target SELECT id, account, name, '', day, 0 FROM source")
	}
	w.Prepare = func(ctx context.Context, b *bench, w *Work) error { return withSource(ctx, b, w, fill...) }
	w.Check = func(ctx context.Context, w Work, _ Result) error { return checkTable(ctx, w, "target") }
	w.Contestants = []Contestant{psql{name: "INSERT ... SELECT", command: func(Work) string {
		return "INSERT INTO target SELECT * FROM source " + onConflict
	}}}
	for _, chunk := range []int{1000, 10_000} {
		w.Contestants = append(w.Contestants,
			inside{name: fmt.Sprintf("loop by key and UNNEST, %d", chunk), run: func(ctx context.Context, w Work) (Result, error) {
				return timedOn(ctx, w, func(conn *pgx.Conn) error { return keyLoop(ctx, conn, chunk) })
			}},
			ours(fmt.Sprintf("rows, %d", chunk), upsertJob(chunk, ", item: "+rowItem, "")),
			ours(fmt.Sprintf("structs, %d", chunk), upsertJob(chunk, ", item: sale", "")))
		if readsAhead() {
			w.Contestants = append(w.Contestants, ours(fmt.Sprintf("rows, read_ahead false, %d", chunk), upsertJob(chunk, ", item: "+rowItem, "false")))
		}
	}
	return w
}

const onConflict = "ON CONFLICT (id) DO UPDATE SET account = excluded.account, name = excluded.name, city = excluded.city, day = excluded.day, amount = excluded.amount"

// withSource makes a template with the rows in the table source, and an empty table target.
func withSource(ctx context.Context, b *bench, w *Work, fill ...string) error {
	w.URL = b.server.url
	if err := b.server.template(ctx, w.Workload, salesTable("source"), salesTable("target"), positionTable, "INSERT INTO position VALUES (1, 0)"); err != nil {
		return err
	}
	at := *w
	at.URL = b.server.urlOf(templateOf(w.Workload))
	if err := copyInto(ctx, at, "source"); err != nil {
		return err
	}
	return b.server.exec(ctx, templatePrefix+identifier(w.Workload), append(fill, "VACUUM ANALYZE")...)
}

func upsertJob(chunk int, item, readAhead string) string {
	text := fmt.Sprintf("job: upsert\n"+jobParameters+"flow:\n- step: upsert\n  chunk:\n    size: %d\n    reader: {query: {sql: \"select %s from source\", key: [id], fetch: %d%s}}\n",
		chunk, header, chunk, item)
	if readAhead != "" {
		text += "    read_ahead: " + readAhead + "\n"
	}
	return text + "    writer: {table: {name: target, mode: upsert, key: [id]}}\n" + expectRows
}

// keyLoop is the work by hand: a page after the last key, and in one transaction an upsert over arrays with
// an UPDATE of the position.
func keyLoop(ctx context.Context, conn *pgx.Conn, chunk int) error {
	var page saleColumns
	for last := int64(0); ; {
		page.reset()
		rows, err := conn.Query(ctx, "SELECT "+header+" FROM source WHERE id > $1 ORDER BY id LIMIT $2", last, chunk)
		if err != nil {
			return err
		}
		var s sale
		if _, err := pgx.ForEachRow(rows, []any{&s.ID, &s.Account, &s.Name, &s.City, &s.Day, &s.Amount}, func() error {
			page.add(s)
			return nil
		}); err != nil {
			return err
		}
		if len(page.ids) == 0 {
			return nil
		}
		last = page.ids[len(page.ids)-1]
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO target "+selectUnnested+" "+onConflict, page.args()...); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, updatePosition, last, 1)
			return err
		}); err != nil {
			return err
		}
	}
}

// saleColumns are rows as an array for each column, as selectUnnested takes them.
type saleColumns struct {
	ids, accounts []int64
	names, cities []string
	days          []time.Time
	amounts       []float64
}

const selectUnnested = "SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::date[], $6::float8[])"

func (c *saleColumns) add(s sale) {
	c.ids, c.accounts, c.names, c.cities = append(c.ids, s.ID), append(c.accounts, s.Account), append(c.names, s.Name), append(c.cities, s.City)
	c.days, c.amounts = append(c.days, s.Day), append(c.amounts, s.Amount)
}

func (c *saleColumns) reset() {
	c.ids, c.accounts, c.names, c.cities = c.ids[:0], c.accounts[:0], c.names[:0], c.cities[:0]
	c.days, c.amounts = c.days[:0], c.amounts[:0]
}

func (c *saleColumns) args() []any {
	return []any{c.ids, c.accounts, c.names, c.cities, c.days, c.amounts}
}

// pages compares the last pages of 1000 rows with the first ones, by the time from one
// chunk to the next in a step that reads by key and writes nothing.
func pages() Workload {
	const few = 10
	between := func(of func(gaps []float64) []float64) func(ctx context.Context, w Work) (Result, error) {
		return func(ctx context.Context, w Work) (Result, error) {
			clock := &clock{}
			_, err := runJob(ctx, w, w.URL, fmt.Sprintf("job: pages\n"+jobParameters+"flow:\n- step: pages\n  chunk:\n    size: 1000\n    reader: {query: {sql: \"select %s from source\", key: [id], item: sale}}\n    writer: clock\n",
				header)+expectRows, batch.Writer[saleItem]("clock", func() *clockWriter { return &clockWriter{clock} }))
			if err != nil {
				return Result{}, err
			}
			return Result{Seconds: spreadOf(of(clock.gaps())).median, Found: strconv.Itoa(len(clock.times))}, nil
		}
	}
	return Workload{
		Name: "w2-pages", Title: "pages of 1000 rows by key, the time of one page", Part: true,
		Contestants: []Contestant{
			inside{name: oursPrefix + " the first ten pages", run: between(func(gaps []float64) []float64 { return gaps[:few] })},
			inside{name: oursPrefix + " the last ten pages", run: between(func(gaps []float64) []float64 { return gaps[len(gaps)-few:] })},
		},
		Prepare: func(ctx context.Context, b *bench, w *Work) error { return withSource(ctx, b, w) },
		Check: func(_ context.Context, w Work, r Result) error {
			if want := strconv.Itoa((w.Rows + 999) / 1000); r.Found != want {
				return fmt.Errorf("there were %s chunks, not %s", r.Found, want)
			}
			return nil
		},
	}
}

type clock struct{ times []time.Time }

func (c *clock) gaps() []float64 {
	gaps := make([]float64, 0, len(c.times))
	for i := 1; i < len(c.times); i++ {
		gaps = append(gaps, c.times[i].Sub(c.times[i-1]).Seconds())
	}
	return gaps
}

type clockWriter struct{ *clock }

func (c *clockWriter) Write(context.Context, []saleItem) error {
	c.times = append(c.times, time.Now())
	return nil
}
