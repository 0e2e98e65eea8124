package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// All cases have 30 rows in chunks of 10; the 16th may be bad, and the process is disturbed at the 14th.
const (
	loseRows  = 30
	badRow    = 16
	disturbAt = 14
)

type loseCase struct {
	name, title string
	// bad means that a row breaks a constraint; it is to be skipped, and to be
	// recorded.
	bad bool
	// refused means that the database refuses the second chunk once, with
	// SQLSTATE 40001; it is to be written again.
	refused bool
	// disturb is the disturbance when the row disturbAt is written alone.
	disturb string
}

const undisturbed = "nothing"

func loseCases() []loseCase {
	return []loseCase{
		{name: "skip", title: "A row breaks a constraint, and is to be skipped", bad: true, disturb: undisturbed},
		{name: "kill", title: "The same, and the process is killed while the rows of the chunk are written one by one", bad: true, disturb: "kill"},
		{name: "stop", title: "The same, and the execution is stopped meanwhile", bad: true, disturb: "stop"},
		{name: "retry", title: "The database refuses a chunk once with SQLSTATE 40001, and it is to be written again", refused: true, disturb: undisturbed},
	}
}

func (c loseCase) workload() Workload {
	return Workload{Name: "lose-" + c.name, Title: c.title, Contestants: []Contestant{
		springLoses{c, "ChunkOrientedStepBuilder", "chunk"},
		springLoses{c, "classic builder", "classic"},
		inside{name: oursPrefix, run: func(ctx context.Context, w Work) (Result, error) { return c.ours(ctx, w) }},
	}}
}

func loseWorkloads() []Workload {
	var all []Workload
	for _, c := range loseCases() {
		all = append(all, c.workload())
	}
	return all
}

type springLoses struct {
	loseCase
	name, builder string
}

func (c springLoses) Name() string { return springPrefix + ", " + c.name }

func (c springLoses) Restarts() bool { return true }

func (c springLoses) Result(stdout []byte) (Result, error) { return parseResult(stdout) }

func (c springLoses) Build(ctx context.Context, b *bench) error {
	return buildSpring(ctx, b.dir, b.spring)
}

func (c springLoses) Command(w Work) (*exec.Cmd, error) {
	disturb := c.disturb
	if w.Again {
		disturb = undisturbed
	}
	return springCommand(w, "256m", map[string]string{
		"work": "lose", "url": w.URL, "input": w.Input, "builder": c.builder, "disturb": disturb, "at": strconv.Itoa(disturbAt),
	}), nil
}

type lost struct {
	// first and then are how the two processes ended; then is empty if the
	// first one completed.
	first, then  string
	rows         int
	missing      []int64
	skipped, bad int
	right        bool
	failed       error // the case could not be run
}

func (b *bench) lose(ctx context.Context) (text string, err error) {
	var out strings.Builder
	input := filepath.Join(b.dir, "entries.csv")
	for _, c := range loseCases() {
		if err := c.writeInput(input); err != nil {
			return "", err
		}
		of := c.workload()
		if err := b.server.template(ctx, of.Name, c.tables()...); err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "\n**%s.** %s\n\n|  | first process | second process | rows | lost | skipped | |\n|---|---|---|---|---|---|---|\n", of.Title, c.expected())
		for _, contestant := range of.Contestants {
			fmt.Fprintf(os.Stderr, "%s: %s\n", of.Name, contestant.Name())
			if p, ok := contestant.(Peer); ok {
				if err := b.build(ctx, p); err != nil {
					return "", err
				}
			}
			l := b.lostBy(ctx, c, of, contestant, Work{Workload: of.Name, Rows: loseRows, Input: input, URL: b.server.url})
			fmt.Fprintf(&out, "| %s | %s |\n", contestant.Name(), strings.Join(l.cells(), " | "))
		}
	}
	version, err := springVersion(b.dir)
	return fmt.Sprintf("\nSpring Batch %s, %s, PostgreSQL %s.\n%s", version, time.Now().UTC().Format(time.DateOnly), b.server.version, out.String()), err
}

func (b *bench) lostBy(ctx context.Context, c loseCase, of Workload, by Contestant, w Work) (l lost) {
	w, l.failed = b.clear(ctx, of, by, w)
	if l.failed != nil {
		return l
	}
	r, err := b.measure(ctx, by, w)
	if err != nil && (c.disturb != "kill" || !wasKilled(err)) {
		l.failed = err
		return l
	}
	l.first = r.ending()
	if err != nil {
		l.first = "killed"
	}
	completed := r.Status == "COMPLETED"
	if !completed {
		w.Again = true
		if r, l.failed = b.measure(ctx, by, w); l.failed != nil {
			return l
		}
		l.then = r.ending()
	}
	l.skipped = r.Skipped
	if c.bad {
		l.bad = 1
	}
	l.rows, l.missing, l.failed = c.stored(ctx, w.URL)
	l.right = r.Status == "COMPLETED" && len(l.missing) == 0 && l.rows == loseRows-l.bad && l.skipped == l.bad && (completed || c.disturb != undisturbed)
	return l
}

func (r run) ending() string {
	if r.Cause == "" {
		return r.Status
	}
	return r.Status + " (" + r.Cause + ")"
}

func (l lost) cells() []string {
	if l.failed != nil {
		return []string{strings.Join(strings.Fields(l.failed.Error()), " "), "", "", "", "", "could not be run"}
	}
	verdict := "**wrong**"
	if l.right {
		verdict = "right"
	}
	missing := "none"
	if n := len(l.missing); n > 0 {
		missing = fmt.Sprintf("%d: %s", n, spans(l.missing))
	}
	then := l.then
	if then == "" {
		then = "-"
	}
	return []string{l.first, then, fmt.Sprintf("%d of %d", l.rows, loseRows-l.bad), missing, fmt.Sprintf("%d of %d", l.skipped, l.bad), verdict}
}

// spans is a sorted list of numbers as people write it: 4, 7-9.
func spans(numbers []int64) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		part := strconv.FormatInt(numbers[i], 10)
		if end > i {
			part += "-" + strconv.FormatInt(numbers[end], 10)
		}
		parts, i = append(parts, part), end+1
	}
	return strings.Join(parts, ", ")
}

func (c loseCase) expected() string {
	if c.bad {
		return fmt.Sprintf("%d rows in chunks of 10; row %d is bad: %d are to be there, and 1 skip is to be counted.", loseRows, badRow, loseRows-1)
	}
	return fmt.Sprintf("%d rows in chunks of 10: all are to be there, and no second process is to be needed.", loseRows)
}

func (c loseCase) writeInput(path string) error {
	text := "id,name\n"
	for id := 1; id <= loseRows; id++ {
		name := "good"
		if c.bad && id == badRow {
			name = "bad"
		}
		text += fmt.Sprintf("%d,%s\n", id, name)
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// tables are the tables of the case. A sequence is not rolled back: the refused row is refused once.
func (c loseCase) tables() []string {
	all := []string{"CREATE TABLE entry (id bigint PRIMARY KEY, name text NOT NULL CHECK (name <> 'bad'))"}
	if c.refused {
		all = append(all, "CREATE SEQUENCE attempt",
			fmt.Sprintf(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.id = %d AND nextval('attempt') = 1 THEN
					RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
				END IF;
				RETURN NEW;
			END $$`, badRow),
			"CREATE TRIGGER refuse BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION refuse()")
	}
	return all
}

// stored counts the rows that are there, and returns the missing good ones.
func (c loseCase) stored(ctx context.Context, url string) (rows int, missing []int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	found, err := conn.Query(ctx, "SELECT id FROM entry")
	if err != nil {
		return 0, nil, err
	}
	ids, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil {
		return 0, nil, err
	}
	for id := int64(1); id <= loseRows; id++ {
		if !slices.Contains(ids, id) && (!c.bad || id != badRow) {
			missing = append(missing, id)
		}
	}
	return len(ids), missing, nil
}
