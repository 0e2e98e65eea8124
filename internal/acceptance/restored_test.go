package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const restoredJob = `
job: load
database: data
parameters:
  day: {type: int}
  bad: {type: int, default: -1, identifying: false}
flow:
- step: load
  chunk:
    size: 1
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {validate: {ok: item.id != params.bad}}
    writer: {table: {name: people, create: true}}
`

type restored struct{ *scene }

func newRestored(t *testing.T, url string) restored {
	t.Helper()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": restoredJob, "in.csv": "id\n1\n2\n3\n4\n"})
	s.url = "sqlite:" + filepath.Join(s.dir, "history.db")
	s.env = []string{"SURFIN_DATABASES_DATA=" + url}
	code, out := s.run("migrate", "--database", "data")
	require.Equal(t, 0, code, out)
	code, out = s.run("migrate")
	require.Equal(t, 0, code, out)
	return restored{s}
}

func (s restored) ends(code int, args ...string) string {
	s.t.Helper()
	got, out := s.run(args...)
	require.Equal(s.t, code, got, "%v: %s", args, out)
	return out
}

func (s restored) backup()  { s.copyHistory("history.db", "backup.db") }
func (s restored) restore() { s.copyHistory("backup.db", "history.db") }

func (s restored) copyHistory(from, to string) {
	s.t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, to+suffix)))
		data, err := os.ReadFile(filepath.Join(s.dir, from+suffix))
		if err == nil {
			require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, to+suffix), data, 0o600))
		}
	}
}

func (s restored) people() string {
	s.t.Helper()
	return s.ends(0, "sql", "--database", "data", "--format", "json", "select id from people order by id")
}

const fourPeople = `"id":1},{"id":2},{"id":3},{"id":4}]`

func compact(text string) string {
	var b []byte
	for _, c := range []byte(text) {
		if c != ' ' && c != '\n' {
			b = append(b, c)
		}
	}
	return string(b)
}

// Rule C18a: a restored history assigns the same numbers again.
func TestARestoredHistoryDoesNotTakeTheCheckpointOfARunThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, before := range []string{"", "another run before"} {
			s := newRestored(t, url)
			s.ends(1, "run", "load.yaml", "day=1", "bad=1") // nothing is committed
			s.backup()
			s.ends(1, "run", "load.yaml", "day=27", "bad=4")
			require.Contains(t, compact(s.people()), `"id":1},{"id":2},{"id":3}]`)
			s.restore()
			day := "day=27"
			if before != "" { // it gets the number of the lost run, and other rows
				day = "day=28"
			}
			for range 3 { // each attempt has a greater number
				out := s.ends(1, "run", "load.yaml", day)
				require.Contains(t, out, "of an instance that this history does not have: the history was restored from a backup, or is a copy")
				require.Contains(t, out, "run with --accept-changes to start from the beginning; see docs/howto/backup-and-restore.md")
				require.Contains(t, compact(s.people()), `"id":1},{"id":2},{"id":3}]`, "nothing is written")
			}
			s.ends(0, "sql", "--database", "data", "--write", "delete from people")
			s.ends(0, "run", "load.yaml", day, "--accept-changes")
			require.Contains(t, compact(s.people()), fourPeople)
			s.ends(0, "sql", "--database", "data", "--write", "drop table people")
			s.ends(0, "sql", "--database", "data", "--write", "delete from surfin_checkpoint")
		}
	})
}

// Rule C18a: the lost run had another number than the current one with its
// parameters.
func TestARunIsRefusedWhoseParametersHaveACheckpointUnderALostNumber(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newRestored(t, url)
		s.backup()
		s.ends(1, "run", "load.yaml", "day=26", "bad=1")
		s.ends(1, "run", "load.yaml", "day=27", "bad=4")
		s.restore()
		out := s.ends(1, "run", "load.yaml", "day=27")
		require.Contains(t, out, "(job instance 2, step execution 2) of an instance that this history does not have")
		require.Contains(t, compact(s.people()), `"id":1},{"id":2},{"id":3}]`)
		s.ends(1, "run", "load.yaml", "day=27", "--accept-changes", "bad=1")
		s.ends(0, "sql", "--database", "data", "--write", "delete from people")
		s.ends(0, "run", "load.yaml", "day=27")
		require.Contains(t, compact(s.people()), fourPeople)
	})
}

// Rule C18a: the data is newer than the history of the same instance.
func TestARestoredHistoryGoesOnWhereTheDataIsOnlyIfThatIsAccepted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newRestored(t, url)
		s.ends(1, "run", "load.yaml", "day=27", "bad=2")
		s.backup()
		s.ends(1, "run", "load.yaml", "day=27", "bad=4")
		require.Contains(t, compact(s.people()), `"id":1},{"id":2},{"id":3}]`)
		s.restore()
		for range 3 {
			out := s.ends(1, "run", "load.yaml", "day=27")
			require.Contains(t, out, "of a later attempt that this history does not have: the history was restored from a backup, but the data is newer")
		}
		s.ends(0, "run", "load.yaml", "day=27", "--accept-changes")
		require.Contains(t, compact(s.people()), fourPeople, "it continues after the last commit of the data")
	})
}

// Rule C18a: a row of a version that identified instances by their number.
func TestACheckpointOfAnOlderVersionIsTakenOnlyIfThatIsAccepted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newRestored(t, url)
		s.ends(1, "run", "load.yaml", "day=27", "bad=4")
		s.ends(0, "sql", "--write", "delete from surfin_instance_identity")
		s.ends(0, "sql", "--database", "data", "--write", "update surfin_checkpoint set instance = '', instance_key = ''")
		out := s.ends(1, "run", "load.yaml", "day=27")
		require.Contains(t, out, "of an older version of Surfin, which identified an instance only by its number")
		s.ends(1, "run", "load.yaml", "day=27", "bad=4", "--accept-changes")
		s.ends(0, "run", "load.yaml", "day=27")
		require.Contains(t, compact(s.people()), fourPeople)
	})
}
