package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// localJob reads one local time in a file, in a table, as a parameter with and without a default, and in expressions.
const localJob = `
job: local
timezone: Europe/Berlin
parameters:
  at: {type: timestamp, min: "2026-07-01 08:00:00", max: "2026-07-01 08:00:00"}
  given: {type: timestamp, default: "2026-07-01 08:00:00", identifying: false}
flow:
- step: files
  chunk:
    reader: {csv: {path: at.csv, item: {id: int, at: timestamp, text: string}}}
    processor:
    - validate: {ok: "item.at == params.at && item.at == params.given && item.at == timestamp(item.text) && item.at == timestamp('01.07.2026 08:00', 'dd.MM.yyyy HH:mm')"}
    - validate: {ok: "hour(item.at) == 8 && format(item.at, 'HH:mm') == '08:00' && string(date(item.at)) == '2026-07-01' && truncate(item.at, 'day') == timestamp(date(item.at)) && add_months(item.at, 5) == timestamp('2026-12-01 08:00:00')"}
    writer: {table: {name: seen, columns: {id: id, at: at, told: text}}}
- step: rows
  chunk:
    reader: {query: {sql: "select * from seen", key: [id]}}
    writer: {csv: rows.csv}
- step: texts
  chunk:
    reader: {query: {sql: "select id, words from word", key: [id], item: {id: int, words: timestamp}}}
    writer: {csv: texts.csv}
`

// Rule D5.
func TestALocalTimeIsOneInstantWhereverItIsRead(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"local.yaml": localJob, "at.csv": "id,at,text\n1,2026-07-01 08:00:00,2026-07-01 08:00:00\n"})
		db, _ := s.open()
		zoned := "timestamptz"
		if strings.HasPrefix(url, "sqlite:") {
			zoned = "timestamp"
		}
		s.exec(db, "create table seen (id int primary key, at "+zoned+", told "+zoned+")", "create table word (id int primary key, words text)",
			"insert into word values (1, '2026-07-01 08:00:00')")
		code, out := s.run("run", "local.yaml", "at=2026-07-01 08:00:00")
		require.Equal(t, 0, code, out)
		for name, want := range map[string]string{
			"rows.csv":  "id,at,told\n1,2026-07-01T06:00:00Z,2026-07-01T06:00:00Z\n",
			"texts.csv": "id,words\n1,2026-07-01T06:00:00Z\n",
		} {
			text, err := os.ReadFile(filepath.Join(s.dir, name))
			require.NoError(t, err)
			require.Equal(t, want, string(text), name)
		}
		code, out = s.run("run", "local.yaml", "at=2026-07-01T06:00:00Z")
		require.Equal(t, 4, code, "it is the same instance: %s", out)
		require.Contains(t, out, "already complete")
	})
}

const heldJob = `
job: held
timezone: Europe/Berlin
flow:
- step: asked
  tasklet: {sql: {query: "select at, told from held where id = 1", out: {at: timestamp, told: timestamp}}}
- step: judged
  when: steps.asked.out.at != timestamp('2026-07-01 08:00:00') || steps.asked.out.told != timestamp('2026-07-01 08:00:00')
  tasklet: {fail: "the step asked read ${steps.asked.out.at} and ${steps.asked.out.told}"}
- step: found
  chunk:
    reader: {query: {sql: "select id from held", key: [id], item: {id: int}}}
    processor:
    - lookup: {table: held, item: {id: int, at: timestamp, told: timestamp}, key: {id: item.id}}
    - lookup: {from: {query: {sql: "select id, at, told from held", key: [id], item: {id: int, at: timestamp, told: timestamp}}}, key: {id: item.id}, prefix: all_}
    writer: {csv: found.csv}
- step: parted
  partition: {by: {query: {sql: "select cast(id as text) as name, at, told from held order by id", item: {name: string, at: timestamp, told: timestamp}}}}
  chunk:
    reader: {query: {sql: "select id from held where 0 = ${part.index}", key: [id], item: {id: int}}}
    processor: {map: {at: part.at, told: part.told}}
    writer: {csv: "part${part.index}.csv"}
`

// Rule D5.
func TestALocalTimeOfATableIsOneInstantInEveryComponent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"held.yaml": heldJob})
		db, _ := s.open()
		zoned, local := "timestamptz", "2026-07-01 06:00:00+00"
		if strings.HasPrefix(url, "sqlite:") {
			zoned, local = "timestamp", "2026-07-01 08:00:00"
		}
		s.exec(db, "create table held (id int primary key, at "+zoned+", told text)", "insert into held values (1, '"+local+"', '2026-07-01 08:00:00')")
		code, out := s.run("run", "held.yaml")
		require.Equal(t, 0, code, out)
		require.Equal(t, "id,at,told,all_at,all_told\n1"+strings.Repeat(",2026-07-01T06:00:00Z", 4)+"\n", s.read("found.csv"))
		require.Equal(t, "id,at,told\n1,2026-07-01T06:00:00Z,2026-07-01T06:00:00Z\n", s.read("part0.csv"))
	})
}

// Rule D5: of a time that the clock shows twice the first is taken, and one
// that it leaves out is refused, in parameters as in files.
func TestALocalTimeOfAClockChangeIsTheFirstOrRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"j.yaml": `
job: j
timezone: Europe/Berlin
parameters: {at: {type: timestamp}, then: {type: timestamp, default: "2026-10-25 02:30:00"}}
expect: params.at == params.then && params.at == timestamp('2026-10-25T00:30:00Z')
flow: [{step: s, tasklet: {shell: ["true"]}}]
`})
	code, out := s.run("run", "j.yaml", "at=2026-03-29 02:30:00")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "parameter at: 2026-03-29 02:30:00 does not exist in Europe/Berlin")
	code, out = s.run("run", "j.yaml", "at=2026-10-25 02:30:00")
	require.Equal(t, 0, code, out)
}

// Rule D5.
func TestAnInstanceOfTheFormerReadingIsNamed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"j.yaml": `
job: j
timezone: Europe/Berlin
parameters: {at: {type: timestamp}, ok: {type: bool, default: false, identifying: false}}
expect: params.ok
flow: [{step: s, tasklet: {shell: ["true"]}}]
`})
		code, out := s.run("run", "j.yaml", "at=2026-07-01T08:00:00Z")
		require.NotEqual(t, 0, code, out)
		s.isFormer()
		for _, more := range [][]string{nil, {"--dry-run"}} {
			code, out = s.run(append([]string{"run", "j.yaml", "at=2026-07-01 08:00:00"}, more...)...)
			require.Contains(t, out, "execution 1, FAILED, was launched with these parameters by an earlier version")
			require.Contains(t, out, "write at=2026-07-01T08:00:00Z for the instance of execution 1, or at=2026-07-01T06:00:00Z for the new one")
			require.Equal(t, 2, code, out)
		}
		code, out = s.run("run", "j.yaml", "at=2026-07-01T08:00:00Z", "ok=true")
		require.Equal(t, 0, code, out)
		code, out = s.run("run", "j.yaml", "at=2026-07-01 08:00:00")
		require.Equal(t, 2, code, "nor is one that is complete run again: %s", out)
		require.Contains(t, out, "execution 2, COMPLETED")
		code, out = s.run("run", "j.yaml", "at=2026-07-01T06:00:00Z", "ok=true")
		require.Equal(t, 0, code, out)
		code, out = s.run("run", "j.yaml", "at=2026-07-01 08:00:00")
		require.Equal(t, 4, code, "the new instance exists now: %s", out)
		require.Contains(t, out, "already complete with these parameters (execution 3)")
	})
}

// Rule D5.
func TestAnInstanceOfTheFormerReadingIsNotTakenForAnother(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"j.yaml": `
job: j
timezone: Europe/Berlin
parameters: {at: {type: timestamp}, ok: {type: bool, default: false, identifying: false}}
expect: params.ok
flow: [{step: s, tasklet: {shell: ["true"]}}]
`})
		code, out := s.run("run", "j.yaml", "at=2026-07-01T10:00:00Z", "ok=true")
		require.Equal(t, 0, code, out)
		code, out = s.run("run", "j.yaml", "at=2026-07-01T11:00:00Z")
		require.NotEqual(t, 0, code, out)
		s.isFormer()
		for _, c := range []struct{ text, now, before, execution string }{
			{"2026-07-01 12:00:00", "2026-07-01T10:00:00Z", "2026-07-01T12:00:00Z", "execution 1, COMPLETED"},
			{"2026-07-01 13:00:00", "2026-07-01T11:00:00Z", "2026-07-01T13:00:00Z", "execution 2, FAILED"},
		} {
			for _, more := range [][]string{nil, {"--dry-run"}} {
				code, out = s.run(append([]string{"run", "j.yaml", "ok=true", "at=" + c.text}, more...)...)
				require.Equal(t, 2, code, out)
				require.Contains(t, out, c.execution)
				require.Contains(t, out, "these parameters are now at="+c.now+", but were at="+c.before+" in an earlier version")
				require.Contains(t, out, "write at="+c.now+" to run that instance")
			}
		}
		code, out = s.run("restart", "2", "ok=true")
		require.Equal(t, 0, code, out)
		code, out = s.run("run", "j.yaml", "at=2026-07-01T10:00:00Z")
		require.Equal(t, 4, code, out)
		require.Contains(t, out, "already complete with these parameters (execution 1)")
		code, out = s.run("run", "j.yaml", "at=2026-07-01 12:00:00", "ok=true", "--again")
		require.Equal(t, 0, code, "a repetition is a new instance: %s", out)
		code, out = s.run("run", "j.yaml", "at=2026-07-01 14:00:00", "ok=true")
		require.Equal(t, 0, code, "nor is what has no other instance refused: %s", out)
	})
}

const mixedJob = `
job: NAME
timezone: ZONE
parameters: {bad: {type: int, identifying: false, default: 3}}
flow:
- step: load
  chunk:
    size: 1
    reader: {query: {sql: "select id, at from src", key: [id], item: {id: int, at: timestamp}}}
    processor: [{map: {id: item.id, at: string(item.at), x: "div(1, item.id == params.bad ? 0 : 1)"}}]
    writer: {table: {name: NAME_dst, create: true}}
`

// Rule D5.
func TestAnAttemptOfTheFormerReadingIsNotContinuedInSilence(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		files := map[string]string{}
		for name, zone := range map[string]string{"berlin": "Europe/Berlin", "again": "Europe/Berlin", "utc": "UTC", "fresh": "Europe/Berlin", "none": "Europe/Berlin", "child": "Europe/Berlin"} {
			files[name+".yaml"] = strings.NewReplacer("NAME", name, "ZONE", zone).Replace(mixedJob)
		}
		files["parent.yaml"] = "job: parent\nparameters: {bad: {type: int, identifying: false, default: 3}}\n" +
			"flow: [{job: call, file: child.yaml, parameters: {bad: '${params.bad}'}}]\n"
		s := newScene(t, url, files)
		db, _ := s.open()
		s.exec(db, "create table src (id int primary key, at text)", "insert into src values (1, '2026-07-01 08:00:00'), (2, '2026-07-01 08:00:00'), (3, '2026-07-01 08:00:00'), (4, '2026-07-01 08:00:00')")
		ends := func(code int, args ...string) string {
			t.Helper()
			got, out := s.run(args...)
			require.Equal(t, code, got, "%v: %s", args, out)
			return out
		}
		for _, name := range []string{"berlin", "again", "utc", "parent"} {
			ends(1, "run", name+".yaml")
		}
		ends(1, "run", "none.yaml", "bad=1")
		s.isFormer()
		for _, args := range [][]string{{"run", "berlin.yaml", "bad=0"}, {"run", "berlin.yaml", "--dry-run"}, {"restart", "1"}, {"restart", "1", "--dry-run"}, {"run", "parent.yaml"}} {
			got, out := s.run(args...)
			require.NotContains(t, []int{0, 1}, got, "%v: %s", args, out)
			require.Contains(t, out, "an earlier version read times without an offset as UTC, and they are now times of Europe/Berlin")
			require.Contains(t, out, "--accept-changes")
			require.Contains(t, out, "--from-start")
		}
		require.Contains(t, ends(0, "explain", "1"), "an earlier version read times without an offset as UTC")
		ends(0, "run", "utc.yaml", "bad=0")
		ends(0, "run", "none.yaml", "bad=0")
		ends(1, "run", "berlin.yaml", "--accept-changes", "bad=4")
		ends(0, "run", "berlin.yaml", "bad=0")
		ends(0, "run", "again.yaml", "--from-start", "bad=0")
		out := ends(1, "run", "parent.yaml", "--accept-changes")
		require.Contains(t, out, "division by zero", "the child continues")
		ends(1, "run", "fresh.yaml", "bad=2")
		ends(0, "run", "fresh.yaml", "bad=0")
	})
}

// isFormer makes the history one of a version before rule D5.
func (s *scene) isFormer() {
	s.t.Helper()
	db, _ := s.open()
	s.exec(db, "update surfin_job_instance set local_times = null", "update surfin_job_execution set local_times = null")
}
