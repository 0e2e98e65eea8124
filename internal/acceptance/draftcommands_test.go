package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const draftOrders = "Order No;Paid;Day;City\n1;4.50;24.12.2026;Bern\n2;10.00;25.12.2026;\nx;1.00;26.12.2026;Rom\n"

func TestADraftOfAFileRunsAtOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"orders.csv": draftOrders + "3;7.25;27.12.2026;Ulm\n", "good.jsonl": `{"id":1,"at":{"x":2}}` + "\n"})
		require.Contains(t, s.said("infer", "orders.csv"), `paid: {type: decimal, from: Paid, scale: 2}`)
		s.said("init", "orders.csv", "--dir", "made")
		code, out := s.run("init", "orders.csv", "--dir", "made")
		require.Equal(t, 2, code)
		require.Contains(t, out, "orders.yaml is there already")
		s.said("init", "orders.csv", "--dir", "made", "--force")
		require.Contains(t, s.said("test", filepath.Join("made", "orders_test.yaml")), "1 passed, 0 failed")
		s.said("run", filepath.Join("made", "orders.yaml"))
		require.Contains(t, s.said("sql", "select count(*) as n, max(day) as d from orders", "--format", "json"), `"n": 4`)

		require.Contains(t, s.said("copy", "good.jsonl", url+"#copied", "--print"), "writer: {table: {name: copied, create: true}}")
		require.Contains(t, s.said("copy", "good.jsonl", url+"#copied"), "COMPLETED")
		require.Contains(t, s.said("sql", "select at_x from copied", "--format", "json"), `"at_x": 2`)
		s.said("copy", "good.jsonl", "out.csv")
		require.Equal(t, "id,at.x\n1,2\n", s.read("out.csv"))
		code, _ = s.run("copy", "good.jsonl", "out.csv")
		require.Equal(t, 2, code)
	})
}

func TestADraftQuotesTheNameOfItsTable(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		names := []string{"order", "user", "Table", "sales 2026-01", "2026"}
		files := map[string]string{}
		for _, n := range names {
			files[n+".csv"] = "id,order,name\n1,2,x\n"
		}
		s := newScene(t, url, files)
		for i, n := range names {
			dir := fmt.Sprintf("made%d", i)
			made := s.said("init", n+".csv", "--dir", dir)
			job, _, _ := strings.Cut(made, "\n")
			require.Contains(t, s.said("test", strings.TrimSuffix(job, ".yaml")+"_test.yaml"), "1 passed, 0 failed")
			s.said("run", job)
		}
		require.Contains(t, s.said("sql", `select "order" from "order"`, "--format", "json"), `"order": 2`)
	})
}

func TestANewCopyDoublesNoRows(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"in.csv": "id,n\n1,1\n2,2\n"})
		db, _ := s.open()
		count := func(want int64) {
			t.Helper()
			require.Equal(t, []int64{want}, s.ints(db, "select count(*) from c", 1))
		}
		s.said("copy", "in.csv", "table:c")
		code, out := s.run("copy", "in.csv", "table:c")
		require.Equal(t, 2, code)
		require.Contains(t, out, "table c has rows already")
		require.Contains(t, out, "--upsert KEY")
		count(2)
		code, out = s.run("copy", "in.csv", "table:c", "--append", "--replace")
		require.Equal(t, 2, code, out)
		s.said("copy", "in.csv", "table:c", "--append")
		count(4)
		s.said("copy", "in.csv", "table:c", "--replace")
		count(2)
		s.exec(db, "create unique index c_id on c (id)")
		s.write("in.csv", "id,n\n2,20\n3,3\n")
		s.said("copy", "in.csv", "table:c", "--upsert", "id")
		count(3)
		require.Equal(t, []int64{24}, s.ints(db, "select sum(n) from c", 1))

		s.said("copy", "in.csv", "out.jsonl")
		code, out = s.run("copy", "in.csv", "out.jsonl")
		require.Equal(t, 2, code)
		require.Contains(t, out, "is there already")
		s.said("copy", "in.csv", "out.jsonl", "--replace")

		// It resumes after its failure, with rows in the table.
		s.write("bad.csv", "id,n\n1,1\n2,\"x\"y\n3,3\n")
		code, out = s.run("copy", "bad.csv", "table:d")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "1 record is invalid")
		code, out = s.run("copy", "bad.csv", "table:e", "--skip", "1")
		require.Equal(t, 5, code, out)
		require.Equal(t, []int64{2}, s.ints(db, "select count(*) from e", 1))
	})
}

func TestACopyAsksForTheEncoding(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"in.csv": "id,name\n1,J\xfcrgen\n"})
		for _, command := range [][]string{{"infer", "in.csv"}, {"init", "in.csv"}, {"copy", "in.csv", "table:c"}} {
			code, out := s.run(command...)
			require.Equal(t, 2, code)
			require.Contains(t, out, "in.csv:2: byte 0xfc at offset 11 is not UTF-8 (is it windows-1252? --encoding windows-1252)")
		}
		s.said("copy", "in.csv", "table:c", "--encoding", "windows-1252")
		require.Contains(t, s.said("sql", "select name from c", "--format", "json"), "Jürgen")
	})
}

func TestACopyIntoATableTakesItsTypes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		db, _ := s.open()
		s.exec(db, "create table s (id bigint primary key, b "+blobOf(url)+", c "+blobOf(url)+", day text, n text)")
		s.exec(db, "create table d (id bigint primary key, b "+blobOf(url)+", c "+blobOf(url)+", day text, n text)")
		for id, values := range []string{bytesOf(url, "00ff") + ", " + bytesOf(url, "d76df8") + ", '24.12.2026', '5'", bytesOf(url, "616263") + ", " + bytesOf(url, "d76df8") + ", '25.12.2026', '6'", "null, null, null, null"} {
			s.exec(db, fmt.Sprintf("insert into s values (%d, %s)", id, values))
		}
		for _, file := range []string{"o.csv", "o.jsonl"} {
			s.said("copy", "table:s", file)
			s.said("copy", file, "table:d", "--replace")
			for _, tables := range [][2]string{{"s", "d"}, {"d", "s"}} {
				require.Equal(t, []int64{0}, s.ints(db, "select count(*) from (select * from "+tables[0]+" except select * from "+tables[1]+") x", 1), file)
			}
		}
	})
}

func bytesOf(url, hex string) string {
	if strings.HasPrefix(url, "postgres") {
		return `'\x` + hex + `'::bytea`
	}
	return "x'" + hex + "'"
}
