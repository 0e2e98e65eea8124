package mysqlform

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule MY8.
func TestAStatementIsTakenApart(t *testing.T) {
	t.Parallel()
	f := Parse(`UPDATE "t" AS s SET epoch = epoch + 1, before = status, last = epoch, status = ? WHERE id = ? AND owner = ? RETURNING before, 1`)
	require.Equal(t, Text{`UPDATE "t" AS s FORCE INDEX (PRIMARY) SET  before = status,  last = epoch,  epoch = epoch + 1,  status = ?  WHERE  id = ? AND owner = ? `, []Span{{0, 1}, {1, 3}}}, f.Write,
		"a column is read before it is written: MySQL assigns one after the other")
	require.Equal(t, Text{`SELECT  before, 1 FROM "t" AS s WHERE id = ?`, []Span{{1, 2}}}, f.Read)
	require.Empty(t, f.Find.SQL)

	f = Parse(`UPDATE "t" SET a = ? WHERE job = ? AND b IN ('x', 'y?') AND (SELECT 1 FROM "t") = ? RETURNING id`)
	require.Equal(t, Text{`SELECT id FROM "t" WHERE  job = ? AND b IN ('x', 'y?') AND (SELECT 1 FROM "t") = ? `, []Span{{1, 3}}}, f.Find)
	require.Equal(t, []Span{{0, 1}}, f.Write.Args)
	require.Contains(t, f.Lock.SQL, "FOR UPDATE")

	f = Parse("UPDATE \"t\" SET a = ? WHERE \"k\" IS NOT NULL AND s = ? ORDER BY \"k\" LIMIT ? FOR UPDATE SKIP LOCKED RETURNING \"k\"")
	require.Empty(t, f.Lock.SQL, "the query of the keys locks the rows")
	require.Equal(t, `UPDATE "t" SET  a = ?  WHERE "k" IN `, f.Write.SQL)

	f = Parse("INSERT INTO `t` AS l (`id`, n, at) SELECT id, ?, now() FROM `u` WHERE id = ? ON CONFLICT (id) DO UPDATE SET n = l.n + excluded.n, at = excluded.at WHERE l.n < excluded.n RETURNING n")
	require.Equal(t, "INSERT INTO `t` (`id`, n, at) SELECT  id, ?, now() FROM `u` WHERE id = ?  ON DUPLICATE KEY UPDATE "+
		"at =  CASE WHEN  `t`.n < VALUES(n)  THEN  VALUES(at)  ELSE `t`.at END, n =  CASE WHEN  `t`.n < VALUES(n)  THEN  `t`.n + VALUES(n) ELSE `t`.n END", f.Write.SQL)
	require.Equal(t, Text{"SELECT  n FROM `t` AS l WHERE (id) IN (SELECT  id FROM `u` WHERE id = ? )", []Span{{1, 2}}}, f.Read)

	f = Parse(`INSERT INTO t (a, b) VALUES (?, lower(?)), (?, 'x') ON CONFLICT DO NOTHING`)
	require.True(t, f.Ignores)
	require.Equal(t, 2, f.Rows)
	require.Empty(t, f.Read.SQL)
	require.False(t, f.Keyed)
	f = Parse(`INSERT INTO "t" (id, b) VALUES (?, lower(?)) ON CONFLICT ("b") DO NOTHING`)
	require.Equal(t, Text{`SELECT 1 FROM "t" AS "t" WHERE (b) = ( lower(?)) LOCK IN SHARE MODE`, []Span{{1, 2}}}, f.Exists)
	require.Equal(t, []string{"t", "id", "b"}, append([]string{f.Table}, f.Columns...))
	f = Parse(`INSERT INTO t (a, b) VALUES (?, lower(?)) ON CONFLICT (b) DO UPDATE SET a = "excluded"."a" RETURNING id, a`)
	require.Equal(t, Text{`SELECT  id, a FROM t AS t WHERE (b) = ( lower(?))`, []Span{{1, 2}}}, f.Read)
	require.True(t, Parse("INSERT INTO t (a) VALUES (?) RETURNING id").Made)
	require.Nil(t, Parse("SELECT 'RETURNING '"))
	require.Nil(t, Parse("INSERT INTO t (a) VALUES (?)"))
}

// Statements of a job pass through the same connections.
func TestAStatementInAnotherFormIsLeftToTheServer(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"INSERT INTO log VALUES ('a row ON CONFLICT here')",
		"INSERT INTO log (a) VALUES ('RETURNING x')",
		"INSERT INTO log VALUES (1) RETURNING id",
		"INSERT INTO log SET a = 1 ON CONFLICT DO NOTHING",
		"INSERT INTO log (a) VALUES (1) ON CONFLICT (b) DO UPDATE SET a = 2 RETURNING a",
		"UPDATE log SET a = 'RETURNING x' WHERE id = 1",
	} {
		require.Nil(t, Parse(query), query)
	}
}
