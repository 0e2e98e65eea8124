package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
)

// w9 loads one file into an empty table of PostgreSQL: in parts, which no one has cut before.
func w9() Workload {
	contestants := []Contestant{
		psql{name: `psql \copy`, command: func(w Work) string { return copyFrom(w.Input) }},
		inside{name: twoCopiesName, run: twoCopies},
		pgloader{}, duckdb{"csv"}, duckdb{"jsonl"}, sling{"csv"}, sling{"jsonl"},
	}
	contestants = append(contestants, springParts(chunkOfParts)...)
	readers := map[string]string{
		"csv":   `{csv: {path: "${params.input}", item: ` + rowItem + "}}",
		"jsonl": `{jsonl: {path: "${params.input}.jsonl", item: ` + rowItem + "}}",
		"fixed": `{fixed: {path: "${params.input}.fixed", item: ` + rowItem + ", columns: {id: 1-10, account: 11-20, name: 21-70, city: 71-90, day: 91-100, amount: 101-120}}}",
	}
	for _, format := range []string{"csv", "jsonl", "fixed"} {
		contestants = append(contestants, copyParts(format, 1), copyParts(format, 2))
		for parts, name := range []string{"", "one part", "two parts", "", "four parts"} {
			if name != "" {
				contestants = append(contestants, oursInParts(format+", "+name+", 10000", readers[format], parts))
			}
		}
	}
	return Workload{
		Name: "w9", Title: "one file to PostgreSQL, in parts", Share: 2, Contestants: contestants,
		Prepare: func(ctx context.Context, b *bench, w *Work) error {
			w.URL = b.server.url
			if err := otherForms(w.Input); err != nil {
				return err
			}
			return b.server.template(ctx, w.Workload, salesTable("sale"), positionTable, "INSERT INTO position VALUES (1, 0), (2, 0)")
		},
		Check: func(ctx context.Context, w Work, _ Result) error {
			return errors.Join(checkTable(ctx, w, "sale"), checkDefinition(ctx, w))
		},
	}
}

// checkDefinition checks that the table is still the one of the template: some loaders make their own.
func checkDefinition(ctx context.Context, w Work) (err error) {
	conn, err := pgx.Connect(ctx, w.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var is string
	err = conn.QueryRow(ctx, `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END, ', ' ORDER BY attnum)
		|| coalesce((SELECT '; ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'sale'::regclass AND contype = 'p'), '')
		FROM pg_attribute WHERE attrelid = 'sale'::regclass AND attnum > 0 AND NOT attisdropped`).Scan(&is)
	const should = "id bigint NOT NULL, account bigint NOT NULL, name text NOT NULL, city text NOT NULL, day date NOT NULL, amount double precision NOT NULL; PRIMARY KEY (id)"
	if err == nil && is != should {
		err = fmt.Errorf("the table is (%s), and should be (%s)", is, should)
	}
	return err
}

const twoCopiesName = `two psql \copy of its halves at once`

func copyFrom(path string) string {
	return fmt.Sprintf(`\copy sale from '%s' with (format csv, header)`, path)
}

func oursInParts(name, reader string, parts int) Contestant {
	partition := ""
	if parts > 1 {
		partition = fmt.Sprintf("  partition: {by: {lines: %[1]d}, workers: %[1]d}\n", parts)
	}
	job := "job: load\n" + jobParameters + "flow:\n- step: load\n" + partition + "  chunk:\n    size: 10000\n    reader: " + reader + "\n    writer: {table: sale}\n" + expectRows
	c := ours(name, job)
	run := c.run
	c.run = func(ctx context.Context, w Work) (Result, error) {
		if w.KillAt > 0 { // the rows of a part
			w.KillAt = max(1, w.KillAt/int64(2*parts))
		}
		return run(ctx, w)
	}
	return c
}

func twoCopies(ctx context.Context, w Work) (Result, error) {
	return timed(func() error {
		failed := make(chan error)
		for _, half := range halves(w.Input) {
			go func() {
				out, err := exec.CommandContext(ctx, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", w.URL, "-c", copyFrom(half)).CombinedOutput() //nolint:gosec // a file of the driver
				if err != nil {
					err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
				}
				failed <- err
			}()
		}
		return errors.Join(<-failed, <-failed)
	})
}

func halves(input string) []string { return []string{input + ".first", input + ".second"} }

// otherForms writes the halves of the file, and the same rows in other formats.
func otherForms(input string) error {
	text, err := os.ReadFile(input) //nolint:gosec // of the driver's own folder
	if err != nil {
		return err
	}
	middle := len(text)/2 + bytes.IndexByte(text[len(text)/2:], '\n') + 1
	names := halves(input)
	if err := os.WriteFile(names[0], text[:middle], 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(names[1], append([]byte(header+"\n"), text[middle:]...), 0o600); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:]
	keys := strings.Split(header, ",")
	return errors.Join(
		writeLines(input+".jsonl", lines, func(out io.Writer, f []string) error {
			_, err := fmt.Fprintf(out, "{%q: %s, %q: %s, %q: %q, %q: %q, %q: %q, %q: %s}\n", keys[0], f[0], keys[1], f[1], keys[2], f[2], keys[3], f[3], keys[4], f[4], keys[5], f[5])
			return err
		}),
		writeLines(input+".fixed", lines, func(out io.Writer, f []string) error {
			_, err := fmt.Fprintf(out, "%-10s%-10s%-50s%-20s%-10s%-20s\n", f[0], f[1], f[2], f[3], f[4], f[5])
			return err
		}))
}

func writeLines(path string, lines []string, write func(out io.Writer, fields []string) error) (err error) {
	f, err := os.Create(path) //nolint:gosec // of the driver's own folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	for _, line := range lines {
		if err := write(out, strings.Split(line, ",")); err != nil {
			return err
		}
	}
	return out.Flush()
}

// formOf is the file with the same rows in a format.
func formOf(input, format string) string {
	if format == "csv" {
		return input
	}
	return input + "." + format
}
