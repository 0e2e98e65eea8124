//test:plain

package migrator_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const victimURL, victimDir = "SURFIN_TEST_VICTIM_URL", "SURFIN_TEST_VICTIM_DIR"

// TestMigrateInAProcessOfItsOwn is the victims' program.
func TestMigrateInAProcessOfItsOwn(t *testing.T) {
	url := os.Getenv(victimURL)
	if url == "" {
		return
	}
	_, err := migrator.Run(t.Context(), open(t, url), migrator.Options{FS: os.DirFS(os.Getenv(victimDir)), Dir: ".", Command: migrator.Up})
	t.Fatalf("the migration ended: %v", err)
}

// killed runs the migrations in a separate process, and kills it with SIGKILL once one of their statements
// waits for a lock.
func killed(t *testing.T, url, dir string, db tx.Database) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMigrateInAProcessOfItsOwn$")
	cmd.Env = append(os.Environ(), victimURL+"="+url, victimDir+"="+dir)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		var waiting bool
		err := db.Conn().QueryRowContext(t.Context(), testdb.Waiting(db.Dialect())).Scan(&waiting)
		return err == nil && waiting
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
}

func migrations(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	return dir
}

func execute(t *testing.T, db tx.Database, statement string) {
	t.Helper()
	_, err := db.Conn().ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

func holding(t *testing.T, db tx.Database, statement string, f func()) {
	t.Helper()
	h, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	_, err = h.Conn().ExecContext(t.Context(), statement)
	require.NoError(t, err)
	f()
	require.NoError(t, h.Rollback())
}

func TestAMigrationThatIsKilledInTheMiddleRunsAgain(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	db := open(t, url)
	execute(t, db, "CREATE TABLE gate (id integer)")
	dir := migrations(t, map[string]string{
		"1_bird.up.sql": "CREATE TABLE bird (id integer);",
		"2_nest.up.sql": "BEGIN;\nINSERT INTO bird VALUES (1);\nLOCK TABLE gate;\nCREATE TABLE nest (id integer);\nCOMMIT;",
	})
	holding(t, db, "LOCK TABLE gate", func() { killed(t, url, dir, db) })
	r, err := migrator.Run(t.Context(), db, migrator.Options{FS: os.DirFS(dir), Dir: ".", Command: migrator.Up})
	require.NoError(t, err)
	require.Equal(t, migrator.Result{From: 1, To: 2, Changed: true}, r)
	var birds int
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT count(*) FROM bird").Scan(&birds))
	require.Equal(t, 1, birds)
}

func TestAStatementThatRefusesATransactionCanBeLeftHalfWayAndIsNamed(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	db := open(t, url)
	dir := migrations(t, map[string]string{
		"1_bird.up.sql": "CREATE TABLE bird (id integer);",
		"2_nest.up.sql": "CREATE TABLE nest (id integer);\n\nCREATE INDEX CONCURRENTLY bird_id\n  ON bird (id);\nINSERT INTO nest VALUES (1);",
	})
	up := migrator.Options{FS: os.DirFS(dir), Dir: ".", Command: migrator.Up, Steps: 1}
	_, err := migrator.Run(t.Context(), db, up)
	require.NoError(t, err)
	holding(t, db, "INSERT INTO bird VALUES (1)", func() { killed(t, url, dir, db) })

	r, err := migrator.Run(t.Context(), db, up)
	var dirty *migrator.DirtyError
	require.ErrorAs(t, err, &dirty)
	require.Equal(t, &migrator.HalfWay{From: 1, To: 2, Line: 3, Statement: "CREATE INDEX CONCURRENTLY bird_id\n  ON bird (id)", Alone: true}, dirty.At)
	require.ErrorContains(t, err, "migration 2 up ended half-way, at line 3: CREATE INDEX CONCURRENTLY bird_id ON bird (id). "+
		"The statements before it in the file are committed; it runs without a transaction, so check how far it got (an index that is INVALID must be dropped). "+
		"Then either complete it manually and record it: force, version 2; "+
		"or undo its changes manually and record that: force, version 1, after which it runs again")
	require.Equal(t, migrator.Result{From: 2, To: 2, Dirty: true}, r)

	execute(t, db, "DROP TABLE nest")
	execute(t, db, "DROP INDEX IF EXISTS bird_id")
	_, err = migrator.Run(t.Context(), db, migrator.Options{FS: os.DirFS(dir), Dir: ".", Command: migrator.Force, Version: 1})
	require.NoError(t, err)
	r, err = migrator.Run(t.Context(), db, up)
	require.NoError(t, err)
	require.Equal(t, migrator.Result{From: 1, To: 2, Changed: true}, r)
	execute(t, db, "DROP INDEX bird_id")
}

func TestAfterAStatementThatRefusedATransactionAFailureSaysWhatIsCommitted(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	fsys := files(map[string]string{
		"7_bird.up.sql": "CREATE TABLE bird (id integer);\nVACUUM bird;\nCREATE INDEX CONCURRENTLY bird_id ON bird (id);\nCREATE TABLE nest (id integer);\nCREATE TABLE\n  bird (id integer);",
	})
	up := migrator.Options{FS: fsys, Dir: "m", Command: migrator.Up}
	r, live := migrator.Run(t.Context(), db, up)
	require.ErrorContains(t, live, "migration 7 up ended half-way, at line 4: CREATE TABLE nest (id integer): line 5: ")
	require.ErrorContains(t, live, "it had no effect")
	require.ErrorContains(t, live, "force, version -1, after which")
	require.Equal(t, migrator.Result{To: 7, Dirty: true, Changed: true}, r)
	var at *migrator.DirtyError
	require.ErrorAs(t, live, &at)
	_, err := migrator.Run(t.Context(), db, up)
	var found *migrator.DirtyError
	require.ErrorAs(t, err, &found)
	require.Equal(t, at.At, found.At)
	_, err = db.Conn().ExecContext(t.Context(), "SELECT * FROM nest")
	require.Error(t, err)
}

func TestATransactionOfTheFilesOwnIsLeftOutAroundItAndRefusedInIt(t *testing.T) {
	all(t, func(t *testing.T, db tx.Database) {
		wrapped := files(map[string]string{"1_bird.up.sql": "-- birds\nBEGIN;\nCREATE TABLE bird (id integer);\nEND;\n"})
		require.Equal(t, migrator.Result{To: 1, Changed: true}, run(t, db, migrator.Options{FS: wrapped, Command: migrator.Up}))
		inside := files(map[string]string{
			"1_bird.up.sql": "", "2_nest.up.sql": "CREATE TABLE nest (id integer);\nCOMMIT;\nCREATE TABLE wing (id integer);",
		})
		r, err := migrator.Run(t.Context(), db, migrator.Options{FS: inside, Dir: "m", Command: migrator.Up})
		require.ErrorContains(t, err, ".up.sql:2: COMMIT: a migration and its version are one transaction")
		require.Equal(t, migrator.Result{From: 1, To: 1}, r)
		_, err = db.Conn().ExecContext(t.Context(), "SELECT * FROM nest")
		require.Error(t, err)
	})
}

func TestATableOfTheMigrateProgramIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	db := open(t, url)
	execute(t, db, "CREATE TABLE schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")
	execute(t, db, "INSERT INTO schema_migrations VALUES (1, true)")
	_, err := migrator.Run(t.Context(), db, migrator.Options{FS: birds, Dir: "m", Command: migrator.Up})
	require.ErrorContains(t, err, "migration 1 failed half-way: repair the schema manually")
	run(t, db, migrator.Options{Command: migrator.Force, Version: -1})
	run(t, db, migrator.Options{Command: migrator.Up})
	var columns int
	require.NoError(t, db.Conn().QueryRowContext(t.Context(),
		"SELECT count(*) FROM information_schema.columns WHERE table_name = 'schema_migrations'").Scan(&columns))
	require.Equal(t, 2, columns)
}
