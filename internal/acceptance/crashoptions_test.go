package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	optionRows  = 1000
	optionFiles = 20
)

type optionCase struct {
	job string
	// tables are statements before each round; src has optionRows rows then.
	tables []string
	// within is the maximum time from the start of the step to a kill; 0 means
	// 150 ms.
	within time.Duration
	check  func(s *scene, db tx.Database)
	// files means that files are there before the start, and arrive until the end.
	files bool
	// fromStart says that a restart after a commit is refused.
	fromStart bool
}

func rowsAre(query string, want ...int64) func(s *scene, db tx.Database) {
	return func(s *scene, db tx.Database) {
		s.t.Helper()
		require.Equal(s.t, want, s.ints(db, query, len(want)))
	}
}

func optionJob(partition, reader, writer, other string) string {
	return "job: options\nparameters: {n: {type: int}}\nflow:\n- step: load\n" + partition +
		"  chunk:\n    size: 10\n    reader: " + reader + "\n    writer: " + writer + "\n" + other
}

const (
	readSource  = `{query: {sql: "select id, name from src", key: [id], item: {id: int, name: string}}}`
	readPart    = `{query: {sql: "select id, name from src where id between ${part.min} and ${part.max}", key: [id], item: {id: int, name: string}}}`
	byRange     = "  partition: {by: {range: {table: src, key: id, parts: 3}}, workers: 2}\n"
	sumOfAll    = optionRows * (optionRows - 1) / 2
	countAndSum = "select count(*), count(distinct id), count(distinct name), cast(sum(id) as bigint) from t"
	// archiveLate makes a file arrive after the load, and moves the files that the load has read.
	archiveLate = `- step: sender
  tasklet: {shell: {command: [sh, -c, "[ -e in/sent.csv ] || [ -e done/sent.csv ] || printf 'id\\n-1\\n' > in/sent.csv"]}}
- step: archive
  tasklet: {files: {move: "in/*.csv", of: load, to: done}}
`
)

func optionCases() map[string]optionCase {
	all := rowsAre(countAndSum, optionRows, optionRows, optionRows, sumOfAll)
	others := "insert into t (id, name) select id + 500, 'old ' || id from src"
	return map[string]optionCase{
		"delete_missing: hard": {
			job:    optionJob("", readSource, "{table: {name: t, mode: upsert, key: [id], delete_missing: hard}}", ""),
			tables: []string{"create table t (id bigint primary key, name text)", others}, check: all,
		},
		"delete_missing: soft": {
			job:    optionJob("", readSource, "{table: {name: t, mode: upsert, key: [id], delete_missing: soft}}", ""),
			tables: []string{"create table t (id bigint primary key, name text, deleted_at timestamp)", others},
			check: rowsAre("select count(*), count(deleted_at), sum(case when deleted_at is null and name = 'name ' || id then 1 else 0 end), min(case when deleted_at is not null then id end) from t",
				optionRows+500, 500, optionRows, optionRows),
		},
		"where": {
			job: optionJob("", readSource, `{table: {name: t, mode: upsert, key: [id], where: "ended = 0"}}`, ""),
			tables: []string{"create table t (id bigint, name text, ended int not null default 0)", "create unique index live on t (id) where ended = 0",
				others, "insert into t (id, name, ended) select id, 'ended', 1 from src"},
			check: rowsAre("select sum(ended), sum(case when ended = 1 and name = 'ended' then 1 else 0 end), count(*), sum(case when ended = 0 and id < 1000 and name = 'name ' || id then 1 else 0 end) from t",
				optionRows, optionRows, 2*optionRows+500, optionRows),
		},
		"create: true, killed around the first commit": {
			job: strings.Replace(optionJob("", readSource, "{table: {name: t, create: true}}", ""), "size: 10", "size: 400", 1), within: 20 * time.Millisecond, check: all,
		},
		"create: true, in parts": {
			job: optionJob(byRange, readPart, "{table: {name: t, create: true}}", ""), check: all,
		},
		"schema: add": {
			job:    optionJob("", readSource, "{table: {name: t, schema: add}}", ""),
			tables: []string{"create table t (id bigint)"}, within: 50 * time.Millisecond, check: all,
		},
		"schema: add, in parts": {
			job:    optionJob(byRange, readPart, "{table: {name: t, schema: add}}", ""),
			tables: []string{"create table t (id bigint)"}, check: all,
		},
		"key: [a desc, b]": {
			job: optionJob("", `{query: {sql: "select id % 7 as a, id as b from src", key: [a desc, b], item: {a: int, b: int}}}`, `{csv: "out.csv"}`, ""),
			check: func(s *scene, _ tx.Database) {
				want := []string{"a,b"}
				for a := 6; a >= 0; a-- {
					for b := a; b < optionRows; b += 7 {
						want = append(want, fmt.Sprintf("%d,%d", a, b))
					}
				}
				require.Equal(s.t, want, strings.Split(strings.TrimSuffix(s.read("out.csv"), "\n"), "\n"))
			},
		},
		"select *": {
			job: optionJob("", `{query: {sql: "select * from src", key: [id]}}`, "{table: {name: t, create: true}}", ""), check: all,
		},
		"snapshot: true": {
			job:    optionJob("", `{query: {sql: "select id, name from src", snapshot: true, fetch: 30, item: {id: int, name: string}}}`, "{table: {name: t, mode: replace}}", ""),
			tables: []string{"create table t (id bigint, name text)", others}, check: all, fromStart: true,
		},
		"of a reader of files": {
			job:   optionJob("", `{files: {glob: "in/*.csv", reader: {csv: {item: {id: int}}}}}`, "{table: {name: t, create: true}}", archiveLate),
			files: true, within: 300 * time.Millisecond, check: (*scene).checkMovedAreLoaded,
		},
		"of parts by files": {
			job:   optionJob("  partition: {by: {files: \"in/*.csv\"}, workers: 2}\n", `{csv: {path: "${part.path}", item: {id: int}}}`, "{table: {name: t, create: true}}", archiveLate),
			files: true, within: 300 * time.Millisecond, check: (*scene).checkMovedAreLoaded,
		},
	}
}

func TestWhatEachOptionPromisesHoldsThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		for name, c := range optionCases() {
			t.Run(name, func(t *testing.T) {
				kills, random := killsOf(t, 5, 5, 17) // a fifth for each option
				s := newScene(t, anotherOf(t, url), map[string]string{"job.yaml": c.job})
				db, r := s.open()
				refused := 0
				for round := 1; kills > 0; round++ {
					s.beginOption(db, c)
					kills, refused = s.killedOption(c, round, kills, refused, random)
					c.check(s, db)
					s.assertNothingLeft(db)
				}
				t.Logf("%d attempts of the load ended after a commit, %d restarts were refused", s.endedInTheMiddle(r), refused)
			})
		}
	})
}

func (s *scene) beginOption(db tx.Database, c optionCase) {
	s.t.Helper()
	s.exec(db, "drop table if exists t", "drop table if exists src", "create table src (id bigint primary key, name text)",
		fmt.Sprintf("insert into src with recursive n(i) as (select 0 union all select i + 1 from n where i < %d) select i, 'name ' || i from n", optionRows-1))
	s.exec(db, c.tables...)
	if !c.files {
		return
	}
	for _, folder := range []string{"in", "done"} {
		require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, folder)))
		require.NoError(s.t, os.MkdirAll(filepath.Join(s.dir, folder), 0o755))
	}
	for i := range optionFiles {
		s.arrive(i)
	}
}

// arrive renames file i, of 20 lines, into the input folder.
func (s *scene) arrive(i int) {
	s.t.Helper()
	var text strings.Builder
	text.WriteString("id\n")
	for line := range 20 {
		fmt.Fprintln(&text, 100*i+line)
	}
	s.write("new.csv", text.String())
	require.NoError(s.t, os.Rename(filepath.Join(s.dir, "new.csv"), filepath.Join(s.dir, "in", strconv.Itoa(i)+".csv")))
}

func (s *scene) killedOption(c optionCase, round, kills, refused int, random *rand.Rand) (left, all int) {
	s.t.Helper()
	within, run := c.within, []string{"run", "job.yaml", fmt.Sprint("n=", round)}
	if within == 0 {
		within = 150 * time.Millisecond
	}
	args := run
	for late := optionFiles; ; late++ {
		p := s.start(args...)
		if kills > 0 {
			p.await("step=load")
			if c.files {
				s.arrive(late)
			}
			if !p.waitFor(time.Duration(random.Int64N(int64(within)))) {
				p.signal(syscall.SIGKILL)
			}
		}
		code, out := p.wait()
		args = run
		switch {
		case isComplete(code, out):
			return kills, refused
		case code == 1 && c.fromStart:
			require.Contains(s.t, out, "rows of a snapshot were read", "only a restart is refused")
			require.Contains(s.t, out, "--from-start")
			args = append(slices.Clone(run), "--from-start")
			refused++
		default:
			require.Equal(s.t, -1, code, "it was not killed, and failed:\n%s", out)
			kills--
		}
	}
}

// endedInTheMiddle counts the attempts of the load that committed but did not complete.
func (s *scene) endedInTheMiddle(r *repository.Repository) (n int) {
	s.t.Helper()
	executions, err := r.Executions(context.Background(), ports.ExecutionFilter{Limit: 10_000})
	require.NoError(s.t, err)
	for _, e := range executions {
		steps, err := r.Steps(context.Background(), e.ID)
		require.NoError(s.t, err)
		for _, step := range steps {
			if step.Name == "load" && step.Status != core.StatusCompleted && step.Total().Commit > 0 {
				n++
			}
		}
	}
	return n
}

func (s *scene) checkMovedAreLoaded(db tx.Database) {
	s.t.Helper()
	moved := s.names("done")
	require.GreaterOrEqual(s.t, len(moved), optionFiles)
	lines, sum := int64(0), int64(0)
	for _, name := range moved {
		for _, line := range strings.Fields(s.read(filepath.Join("done", name)))[1:] {
			id, err := strconv.ParseInt(line, 10, 64)
			require.NoError(s.t, err)
			lines, sum = lines+1, sum+id
		}
	}
	require.Equal(s.t, []int64{lines, lines, sum}, s.ints(db, "select count(*), count(distinct id), cast(sum(id) as bigint) from t", 3))
	require.Contains(s.t, s.names("in"), "sent.csv")
}

func (s *scene) assertNothingLeft(db tx.Database) {
	s.t.Helper()
	tables := `select count(*) from pg_tables where schemaname = current_schema() and tablename ~ '^surfin_.*_t(_keys)?$'`
	if db.Dialect() == tx.SQLite {
		tables = `select count(*) from sqlite_master where type = 'table' and (name like 'surfin\_%\_t' escape '\' or name like 'surfin\_%\_t\_keys' escape '\')`
	}
	require.Equal(s.t, []int64{0}, s.ints(db, tables, 1), "a table was left")
}
