package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestATableIsASourceOfDrafts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		db, _ := s.open()
		s.exec(db, `create table people (id bigint primary key, "Full Name" text not null, paid numeric(10,2), born date, seen timestamp, ok boolean not null)`,
			`insert into people values (2, 'Grace', 1.50, '1906-12-09', '2026-01-02 03:04:05', true), (1, 'Ada', null, null, null, false)`,
			`create table nokey (a int, b text)`, `insert into nokey values (1, 'x')`, `create table photo (id int primary key, image `+blobOf(url)+`)`)
		said := s.said("infer", "table:people")
		for _, line := range []string{"id: int\n", `full_name: {type: string, from: Full Name}`, "paid: {type: decimal null, scale: 2}", "born: date null", "seen: timestamp null", "ok: bool\n", "key id"} {
			require.Contains(t, said, line)
		}
		code, out := s.run("infer", "table:peple")
		require.Equal(t, 2, code)
		require.Contains(t, out, "there is no table peple (did you mean people?)")
		code, out = s.run("infer", "table:people", "--database", "none")
		require.Equal(t, 2, code)
		require.Contains(t, out, `no database "none"; known: default`)

		s.said("copy", "table:people", "out.csv")
		require.Equal(t, "id,Full Name,paid,born,seen,ok\n1,Ada,,,,false\n2,Grace,1.50,1906-12-09,2026-01-02T03:04:05Z,true\n", s.read("out.csv"))
		s.said("copy", "out.csv", "table:again")
		require.Equal(t, []int64{2}, s.ints(db, "select count(*) from again", 1))

		s.said("copy", "table:nokey", "nokey.csv")
		require.Equal(t, "a,b\n1,x\n", s.read("nokey.csv"))
		s.said("copy", "table:nokey", "nokey.csv", "--key", "a,b", "--replace")
		require.Equal(t, "a,b\n1,x\n", s.read("nokey.csv"))
		s.exec(db, `insert into photo values (1, `+map[bool]string{true: `'\xff00aa'`, false: `x'ff00aa'`}[blobOf(url) == "bytea"]+`)`)
		require.Contains(t, s.said("infer", "table:photo"), "image: bytes null")
		s.said("copy", "table:photo", "photo.csv")
		require.Equal(t, "id,image\n1,/wCq\n", s.read("photo.csv"))

		s.said("init", "table:people", "--dir", "made")
		require.Contains(t, s.said("test", filepath.Join("made", "people_test.yaml")), "1 passed, 0 failed")
		s.said("run", filepath.Join("made", "people.yaml"))
		require.Contains(t, s.read(filepath.Join("made", "people.csv")), "2,Grace,1.50")

		other := anotherOf(t, url)
		s.env = append(s.env, "SURFIN_DATABASES_OTHER="+other)
		s.said("migrate", "--database", "other")
		s.said("copy", "table:people", "table:people", "--to-database", "other")
		require.Contains(t, s.said("sql", "--database", "other", `select "Full Name" from people order by id`, "--format", "json"), "Grace")
		printed := s.said("copy", "table:people", "table:people", "--to-database", "other", "--print")
		require.Contains(t, printed, `writer: {table: {name: people, create: true, columns: {id: id, Full Name: full_name`)
		s.write("copy.yaml", printed)
		s.exec(db, "delete from people where id = 1", "update people set id = 3")
		s.said("run", "copy.yaml", "--again")
		require.Contains(t, s.said("sql", "--database", "other", "select count(*) as n from people", "--format", "json"), `"n": 3`)
	})
}

func blobOf(url string) string {
	if strings.HasPrefix(url, "postgres") {
		return "bytea"
	}
	return "blob"
}

func TestACopyGoesOnAtItsPosition(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		db, _ := s.open()
		const rows = 5000
		s.exec(db, "create table big (id bigint primary key, name text)", "create table target (id bigint primary key check (id < 3000 or id > 4500), name text)")
		s.fill(db, "big", rows, func(i int) string { return fmt.Sprintf("%d, 'n%d'", i, i) })
		code, out := s.run("copy", "table:big", "table:target")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "restart it:")
		require.Contains(t, out, "surfin copy table:big table:target")
		before := s.ints(db, "select count(*) from target", 1)[0]
		require.NotZero(t, before)
		s.exec(db, "update big set name = 'changed' where id = 0", "alter table big add column more text", "update big set id = -id where id between 3000 and 4500")
		require.Contains(t, s.said("explain", "1"), "surfin restart 1")
		out = s.said("restart", "1")
		require.Contains(t, out, "attempt 2")
		require.Contains(t, out, "the job has no file: it is read from the history")
		require.Equal(t, []int64{rows - 1501, 0}, s.ints(db, "select count(*), sum(case when name = 'changed' then 1 else 0 end) from target", 2))
		require.Contains(t, s.said("copy", "table:big", "other.csv"), "COMPLETED")
	})
}

func TestACopyThatIsKilledGoesOnAtItsPosition(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		db, _ := s.open()
		const rows = 1_000_000 // some seconds, in which a slow test can see the copy at work
		lines := make([]string, 0, rows+1)
		lines = append(lines, "id,name")
		for i := range rows {
			lines = append(lines, fmt.Sprintf("%d,n%d", i, i))
		}
		s.write("in.csv", strings.Join(lines, "\n")+"\n")
		p := s.start("copy", "in.csv", "in.jsonl")
		require.Eventually(t, func() bool {
			return s.ints(db, "select coalesce(max(write_count), 0) from surfin_step_execution where name = 'copy' and status = 'STARTED'", 1)[0] > 0
		}, time.Minute, time.Millisecond)
		p.signal(syscall.SIGKILL)
		<-p.done
		require.Contains(t, s.said("copy", "in.csv", "in.jsonl"), "attempt 2")
		require.Equal(t, rows, strings.Count(s.read("in.jsonl"), "\n"))
	})
}

func TestColumnsOfDomainsAreCopied(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	s := newScene(t, url, nil)
	db, _ := s.open()
	s.exec(db, "create domain money2 as numeric(10,2)", "create domain price as money2 not null", "create domain tags as text[]", "create domain whole as int",
		"create table goods (id whole primary key, price price, tags tags, old money2[])",
		`insert into goods values (1, 5.10, '{a,b}', '{1.00,null}')`)
	said := s.said("infer", "table:goods")
	for _, line := range []string{"id: int\n", "price: {type: decimal, scale: 2}", "tags: list of string null", "old: {type: list of decimal null, scale: 2}"} {
		require.Contains(t, said, line)
	}
	s.said("copy", "table:goods", "table:again")
	require.Equal(t, []int64{1}, s.ints(db, "select count(*) from goods g join again a using (id) where g.price = a.price and g.tags::text = a.tags::text and g.old::text = a.old::text", 1))
}
