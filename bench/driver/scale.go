package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// scaleConnections are enough for the most worker loops of the section idle.
const scaleConnections = 3000

func (o options) serverSettings() []string {
	if !o.scale {
		return nil
	}
	return []string{"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.max=200000", fmt.Sprintf("max_connections=%d", scaleConnections)}
}

type scaleSection struct {
	name  string
	sized bool // by -size
	run   func(ctx context.Context, b *bench) ([][]string, error)
}

func scaleSections() []scaleSection {
	return []scaleSection{
		{"costs", false, scaleCosts}, {"parts", false, scaleParts}, {"idle", false, scaleIdle}, {"history", true, scaleHistory},
	}
}

// showScale runs the sections that -run selects, and prints their tables; with -page each goes to its place there.
func (b *bench) showScale(ctx context.Context) error {
	ran := false
	for _, s := range scaleSections() {
		if !b.run.MatchString(s.name) {
			continue
		}
		ran = true
		begin, load := time.Now(), loadAverage()
		rows, err := s.run(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		command := fmt.Sprintf("make bench-scale FLAGS='-run %s'", s.name)
		if s.sized {
			command = fmt.Sprintf("make bench-scale SIZE=%d FLAGS='-run %s'", b.size, s.name)
		}
		text := fmt.Sprintf("\n%s\n`%s`, %s, in %.0f s, after a load average of %s: %s.\n", markdownTable(rows), command, begin.Format(time.DateOnly), time.Since(begin).Seconds(),
			load, newReport(ctx, b).machine)
		fmt.Println(text)
		if b.page == "" {
			continue
		}
		if err := replaceAfter(b.page, fmt.Sprintf(scaleMark, s.name), text); err != nil {
			return err
		}
	}
	if !ran {
		return fmt.Errorf("no section of -scale matches -run %q", b.options.run)
	}
	return nil
}

// scaleMark is the mark of a section in a page.
const scaleMark = "<!-- results of %s: written by make bench-scale -->"

// loadAverage covers the last minute, if the system measures it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown height"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

func markdownTable(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return out.String()
}

// scaleDatabase makes the empty database of a section, and returns its URL.
func (b *bench) scaleDatabase(ctx context.Context, section string) (string, error) {
	name := "scale-" + section
	if err := b.server.template(ctx, name, salesTable("sale"), "CREATE EXTENSION pg_stat_statements"); err != nil {
		return "", err
	}
	if err := b.server.fresh(ctx, name); err != nil {
		return "", err
	}
	return b.server.urlOf(runDatabase), nil
}

// cost counts the work of the server: statements with BEGIN and COMMIT, transactions that wrote, bytes of its
// log, and seconds of its CPU.
type cost struct {
	seconds, statements, writes, wal, cpu float64
}

func (c cost) times(f float64) cost {
	return cost{c.seconds * f, c.statements * f, c.writes * f, c.wal * f, c.cpu * f}
}

func (c cost) minus(o cost) cost {
	return cost{c.seconds - o.seconds, c.statements - o.statements, c.writes - o.writes, c.wal - o.wal, c.cpu - o.cpu}
}

func (c cost) cells() []string {
	return []string{countOf(c.statements), countOf(c.writes), bytesText(c.wal), cpuText(c.cpu)}
}

// countOf keeps the digits of small numbers.
func countOf(v float64) string {
	if v < 9.95 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func bytesText(v float64) string {
	switch {
	case v < 1<<10:
		return fmt.Sprintf("%.0f B", v)
	case v < 1<<20:
		return fmt.Sprintf("%.1f KB", v/(1<<10))
	case v < 1<<30:
		return fmt.Sprintf("%.1f MB", v/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", v/(1<<30))
}

func cpuText(v float64) string {
	if v < 0.0995 {
		return fmt.Sprintf("%.2f ms", v*1000)
	}
	return fmt.Sprintf("%.2f s", v)
}

// meter reads the counters of the server on a connection of its own, which counts as well.
type meter struct {
	server *server
	conn   *pgx.Conn
}

func (b *bench) meterOf(ctx context.Context, url string) (*meter, error) {
	conn, err := pgx.Connect(ctx, url)
	return &meter{b.server, conn}, err
}

func (m *meter) close(ctx context.Context) error { return m.conn.Close(context.WithoutCancel(ctx)) }

var zeroTime = time.Now()

func (m *meter) read(ctx context.Context) (c cost, err error) {
	err = m.conn.QueryRow(ctx, `SELECT (SELECT COALESCE(sum(calls), 0) FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND query NOT LIKE '%pg_stat_statements%')::float8,
		pg_snapshot_xmax(pg_current_snapshot())::text::float8, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8`).Scan(&c.statements, &c.writes, &c.wal)
	c.cpu, c.seconds = m.server.cpu(), time.Since(zeroTime).Seconds()
	return c, err
}

// during is the cost of an act.
func (m *meter) during(ctx context.Context, act func() error) (c cost, err error) {
	before, err := m.read(ctx)
	if err != nil {
		return c, err
	}
	if err := act(); err != nil {
		return c, err
	}
	after, err := m.read(ctx)
	return after.minus(before), err
}

// rate is the cost of a second without other work.
func (m *meter) rate(ctx context.Context, d time.Duration) (cost, error) {
	c, err := m.during(ctx, func() error { return pause(ctx, d) })
	return c.times(1 / c.seconds), err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// sessions is the number of the database's connections other than the meter's.
func (m *meter) sessions(ctx context.Context) (n int, err error) {
	err = m.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&n)
	return n, err
}

// most prints the most frequent statements since the last reset, if the process is asked to.
func (m *meter) most(ctx context.Context, seconds float64) error {
	if os.Getenv("SURFIN_BENCH_STATEMENTS") == "" {
		return nil
	}
	rows, err := m.conn.Query(ctx, `SELECT calls::float8, left(regexp_replace(query, '\s+', ' ', 'g'), 150) FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY calls DESC LIMIT 60`)
	if err != nil {
		return err
	}
	for rows.Next() {
		var calls float64
		var text string
		if err := rows.Scan(&calls, &text); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%8.2f/s  %s\n", calls/seconds, text)
	}
	return rows.Err()
}

func (m *meter) reset(ctx context.Context) error {
	_, err := m.conn.Exec(ctx, "SELECT pg_stat_statements_reset()")
	return err
}
