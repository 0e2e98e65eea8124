package acceptance

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// loadJob writes without a key, so that a row written twice is there twice.
const loadJob = `
job: load
parameters:
  input: {type: path}
  into: {type: string}
flow:
- step: create
  tasklet: {sql: {statement: "create table %s (id bigint, name text, amount double precision)"}}
- step: load
  chunk:
    size: 10
    reader: {csv: {path: "${params.input}", item: {id: int, name: string, amount: float}}}
    processor:
    - filter: item.id %% 10 != 3
    writer: {table: {name: "%s"}}
- step: export
  chunk:
    size: 1000
    reader: {query: {sql: "select id, name from %s", key: [id], item: {id: int, name: string}}}
    writer: {csv: {path: "%s.csv"}}
`

const (
	crashRows  = 25_000  // for loads that are killed, each of them many times
	frozenRows = 80_000  // for one that is frozen as soon as it is at work
	longRows   = 200_000 // for a process that must still be at work when something is done to it
)

func writeInput(t *testing.T, path string, rows int) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "id,name,amount")
	for i := range rows {
		fmt.Fprintf(w, "%d,\"name, %d\",%d.5\n", i, i, i)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
}

// Rule C19.
func TestEveryRowIsThereOnceThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		kills, random := killsOf(t, 5, 1, 1)
		s := newScene(t, url, nil)
		writeInput(t, filepath.Join(s.dir, "in.csv"), crashRows)
		for load := 0; kills > 0; load++ {
			table := "target" + strconv.Itoa(load)
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, table+".yaml"), []byte(loadJobOn(url, table)), 0o600))
			kills = s.loadWithKills(table, kills, random)
			s.assertLoaded(table, crashRows)
		}
	})
}

// On MySQL, CREATE commits (rule MY3).
func loadJobOn(url, table string) string {
	text := fmt.Sprintf(loadJob, table, table, table, table)
	if !strings.HasPrefix(url, "mysql:") {
		return text
	}
	return strings.Replace(text, `  tasklet: {sql: {statement: "create table `, "  transaction: {propagation: NOT_SUPPORTED}\n  tasklet: {sql: {statement: \"create table if not exists ", 1)
}

// killsOf returns how often a test kills on a database, and the source of the
// random moments.
func killsOf(t *testing.T, otherwise, share int, stream uint64) (kills int, random *rand.Rand) {
	t.Helper()
	seed := envInt(t, "SURFIN_CRASH_SEED", int(time.Now().UnixNano()))
	kills = envInt(t, "SURFIN_CRASH_KILLS", otherwise) / share
	t.Logf("seed %d, %d kills", seed, kills)
	return kills, rand.New(rand.NewPCG(uint64(seed), stream)) //nolint:gosec // moments, not secrets
}

func (s *scene) loadWithKills(table string, kills int, random *rand.Rand) int {
	s.t.Helper()
	for {
		p := s.start("run", table+".yaml", "input=in.csv", "into="+table)
		if kills > 0 {
			if random.IntN(5) > 0 {
				p.await("step=load")
			}
			if !p.waitFor(time.Duration(random.IntN(250_000)) * time.Microsecond) {
				p.signal(syscall.SIGKILL)
			}
		}
		code, out := p.wait()
		if isComplete(code, out) {
			return kills
		}
		require.Equal(s.t, -1, code, "it was not killed, and failed:\n%s", out)
		kills--
	}
}

func (s *scene) assertLoaded(table string, rows int) {
	s.t.Helper()
	s.assertLoadedIn(table, rows, int64(rows)/10)
}

func (s *scene) assertLoadedIn(table string, rows int, commits int64) {
	s.t.Helper()
	want := int64(rows) / 10 * 9
	db, r := s.open()
	got := s.ints(db, "select count(*), count(distinct id), count(distinct name), sum(id) from "+table, 4)
	sum := int64(0)
	for i := range int64(rows) {
		if i%10 != 3 {
			sum += i
		}
	}
	require.Equal(s.t, []int64{want, want, want, sum}, got)
	counters, attempts := s.totals(r, "load", "into", table)
	s.t.Logf("%s: %d attempts, %+v", table, attempts, counters)
	require.Equal(s.t, core.Counters{Read: int64(rows), Filter: int64(rows) / 10, Write: want, Commit: commits}, counters)
	s.assertExport(table, int(want))
}

func (s *scene) assertExport(table string, want int) {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.dir, table+".csv"))
	require.NoError(s.t, err)
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	lines.Scan()
	require.Equal(s.t, "id,name", lines.Text())
	n := 0
	for id := 0; lines.Scan(); id++ {
		if id%10 == 3 {
			id++
		}
		require.Equal(s.t, fmt.Sprintf("%d,\"name, %d\"", id, id), lines.Text())
		n++
	}
	require.NoError(s.t, lines.Err())
	require.Equal(s.t, want, n)
}

func envInt(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}
