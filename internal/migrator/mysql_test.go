package migrator_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAStatementOfMySQLThatCommitsIsRecordedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	url := testdb.MySQL(t)
	db := open(t, url)
	dir := migrations(t, map[string]string{
		"1_bird.up.sql": "CREATE TABLE bird (id integer);",
		"2_nest.up.sql": "INSERT INTO bird VALUES (1);\nCREATE TABLE nest (id integer);\n\nALTER TABLE bird\n  ADD COLUMN name text;\nINSERT INTO nest VALUES (1);",
	})
	up := migrator.Options{FS: os.DirFS(dir), Dir: ".", Command: migrator.Up, Steps: 1}
	_, err := migrator.Run(t.Context(), db, up)
	require.NoError(t, err)
	up.Steps = 0
	// The server still waits with the ALTER of a killed process, and may do it.
	holding(t, db, "SELECT * FROM bird", func() { killed(t, url, dir, db) })

	r, err := migrator.Run(t.Context(), db, up)
	var dirty *migrator.DirtyError
	require.ErrorAs(t, err, &dirty)
	require.Equal(t, &migrator.HalfWay{From: 1, To: 2, Line: 4, Statement: "ALTER TABLE bird\n  ADD COLUMN name text", Alone: true}, dirty.At)
	require.ErrorContains(t, err, "migration 2 up ended half-way, at line 4: ALTER TABLE bird ADD COLUMN name text. "+
		"The statements before it in the file are committed; it runs without a transaction, so check how far it got. "+
		"Then either complete it manually and record it: force, version 2; "+
		"or undo its changes manually and record that: force, version 1, after which it runs again")
	require.Equal(t, migrator.Result{From: 2, To: 2, Dirty: true}, r)
	var birds int
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT count(*) FROM bird").Scan(&birds))
	require.Equal(t, 1, birds)

	execute(t, db, "DROP TABLE nest")
	execute(t, db, "ALTER TABLE bird DROP COLUMN IF EXISTS name")
	_, err = migrator.Run(t.Context(), db, migrator.Options{FS: os.DirFS(dir), Dir: ".", Command: migrator.Force, Version: 1})
	require.NoError(t, err)
	r, err = migrator.Run(t.Context(), db, up)
	require.NoError(t, err)
	require.Equal(t, migrator.Result{From: 1, To: 2, Changed: true}, r)
}

func TestAFailureOnMySQLIsHalfWayOnlyAfterACommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, says string
		dirty      bool
	}{
		"first":        {"CREATE TABEL nest (id integer);", "m/1_x.up.sql:1: ", false},
		"rows only":    {"INSERT INTO bird VALUES (1);\nINSERT INTO nowhere VALUES (1);", "m/1_x.up.sql:2: ", false},
		"after a DDL":  {"CREATE TABLE nest (id integer);\nINSERT INTO bird VALUES (1);\nINSERT INTO nowhere VALUES (1);", "line 2: INSERT INTO bird VALUES (1): line 3: ", true},
		"a second DDL": {"CREATE TABLE nest (id integer);\nALTER TABLE nowhere ADD COLUMN x int;", "committed; it had no effect", true},
		"several":      {"DROP TABLE bird, nowhere;", "check how far it got", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, testdb.MySQL(t))
			execute(t, db, "CREATE TABLE bird (id integer)")
			r, err := migrate(t, db, c.text)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.dirty, r.Dirty)
			if c.dirty {
				_, again := migrate(t, db, c.text)
				var dirty *migrator.DirtyError
				require.ErrorAs(t, again, &dirty)
				return
			}
			require.Equal(t, "0", ask(t, db, "SELECT count(*) FROM bird"))
			r, err = migrate(t, db, "CREATE TABLE nest (id integer)")
			require.NoError(t, err)
			require.Equal(t, applied, r)
		})
	}
}

func TestBodiesOfMySQLAreStatements(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	r, err := migrate(t, db, `CREATE TABLE bird (id integer);
CREATE PROCEDURE fill(n integer) BEGIN
  WHILE n > 0 DO
    IF n > 1 THEN INSERT INTO bird VALUES (n); ELSE INSERT INTO bird VALUES (CASE n WHEN 1 THEN 10 END); END IF;
    SET n = n - 1;
  END WHILE;
END;
CALL fill(3);
INSERT INTO bird VALUES (100)`)
	require.NoError(t, err)
	require.Equal(t, applied, r)
	require.Equal(t, "115", ask(t, db, "SELECT sum(id) FROM bird"))
}

func TestATableOfTheMigrateProgramOnMySQLGetsAColumn(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	execute(t, db, "CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")
	execute(t, db, "INSERT INTO schema_migrations VALUES (1, true)")
	_, err := migrator.Run(t.Context(), db, migrator.Options{FS: birds, Dir: "m", Command: migrator.Up})
	require.ErrorContains(t, err, "migration 1 failed half-way: repair the schema manually")
	run(t, db, migrator.Options{Command: migrator.Force, Version: -1})
	run(t, db, migrator.Options{Command: migrator.Up})
}
