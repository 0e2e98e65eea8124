package migrator_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func files(content map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range content {
		fsys["m/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

var birds = files(map[string]string{
	"1_bird.up.sql":    "CREATE TABLE bird (id integer PRIMARY KEY);\nCREATE TABLE nest (id integer PRIMARY KEY);",
	"1_bird.down.sql":  "DROP TABLE nest; DROP TABLE bird;",
	"2_name.up.sql":    "ALTER TABLE bird ADD COLUMN name text;",
	"2_name.down.sql":  "ALTER TABLE bird DROP COLUMN name;",
	"10_wing.up.sql":   "ALTER TABLE bird ADD COLUMN wing integer;",
	"10_wing.down.sql": "ALTER TABLE bird DROP COLUMN wing;",
})

func open(t *testing.T, url string) tx.Database {
	t.Helper()
	p, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	db, err := p.Database("")
	require.NoError(t, err)
	return db
}

func each(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) { f(t, open(t, url)) })
}

// all is each, with MariaDB.
func all(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) { f(t, open(t, url)) })
}

func run(t *testing.T, db tx.Database, o migrator.Options) migrator.Result {
	t.Helper()
	if o.FS == nil {
		o.FS = birds
	}
	o.Dir = "m"
	r, err := migrator.Run(t.Context(), db, o)
	require.NoError(t, err)
	return r
}

func TestEveryCommandMovesTheSchemaAndSaysFromWhereToWhere(t *testing.T) {
	all(t, func(t *testing.T, db tx.Database) {
		version := func() migrator.Result { return run(t, db, migrator.Options{Command: migrator.Version}) }
		require.Equal(t, migrator.Result{}, version())

		require.Equal(t, migrator.Result{To: 1, Changed: true}, run(t, db, migrator.Options{Command: migrator.Up, Steps: 1}))
		require.Equal(t, migrator.Result{From: 1, To: 10, Changed: true}, run(t, db, migrator.Options{Command: migrator.Up}))
		require.Equal(t, migrator.Result{From: 10, To: 10}, run(t, db, migrator.Options{Command: migrator.Up}))
		require.Equal(t, migrator.Result{From: 10, To: 10}, run(t, db, migrator.Options{Command: migrator.Up, Steps: 3}))
		_, err := db.Conn().ExecContext(t.Context(), "INSERT INTO bird (id, name, wing) VALUES (1, 'owl', 2)")
		require.NoError(t, err)

		require.Equal(t, migrator.Result{From: 10, To: 2, Changed: true}, run(t, db, migrator.Options{Command: migrator.Down, Steps: 1}))
		require.Equal(t, migrator.Result{From: 2, To: 10, Changed: true}, run(t, db, migrator.Options{Command: migrator.Goto, Version: 10}))
		require.Equal(t, migrator.Result{From: 10, To: 1, Changed: true}, run(t, db, migrator.Options{Command: migrator.Force, Version: 1}))
		require.Equal(t, migrator.Result{From: 1, To: 10, Changed: true}, run(t, db, migrator.Options{Command: migrator.Force, Version: 10}))
		require.Equal(t, migrator.Result{From: 10, To: 0, Changed: true}, run(t, db, migrator.Options{Command: migrator.Goto}))
		require.Equal(t, migrator.Result{}, version())
		require.Equal(t, migrator.Result{}, run(t, db, migrator.Options{Command: migrator.Down, Steps: 1}))
	})
}

func TestVersionCreatesNothing(t *testing.T) {
	all(t, func(t *testing.T, db tx.Database) {
		run(t, db, migrator.Options{Command: migrator.Version, Table: "history"})
		_, err := db.Conn().ExecContext(t.Context(), `SELECT * FROM history`)
		require.Error(t, err)
	})
}

func TestTwoTablesKeepTwoHistories(t *testing.T) {
	all(t, func(t *testing.T, db tx.Database) {
		other := files(map[string]string{"7_o.up.sql": "CREATE TABLE other (id integer)"})
		run(t, db, migrator.Options{Command: migrator.Up, Table: "surfin_schema"})
		r := run(t, db, migrator.Options{Command: migrator.Up, Table: "App History", FS: other})
		require.Equal(t, migrator.Result{To: 7, Changed: true}, r)
		require.Equal(t, uint(10), run(t, db, migrator.Options{Command: migrator.Version, Table: "surfin_schema"}).To)
	})
}

var broken = files(map[string]string{
	"1_bird.up.sql": "CREATE TABLE bird (id integer PRIMARY KEY);",
	"2_bad.up.sql":  "CREATE TABLE half (id integer);\nALTER TABLE nowhere ADD COLUMN name text;",
})

func TestAMigrationThatFailsLeavesThoseBeforeItAndNothingOfItself(t *testing.T) {
	each(t, func(t *testing.T, db tx.Database) {
		r, err := migrator.Run(t.Context(), db, migrator.Options{FS: broken, Dir: "m", Command: migrator.Up})
		require.ErrorContains(t, err, "migrate database default, up: on the way to version 2: m/2_bad.up.sql:2: ")
		require.ErrorContains(t, err, ", in: ALTER TABLE nowhere ADD COLUMN name text")
		_, err = db.Conn().ExecContext(t.Context(), "SELECT * FROM bird")
		require.NoError(t, err)
		_, err = db.Conn().ExecContext(t.Context(), "SELECT * FROM half")
		require.Error(t, err)
		require.Equal(t, migrator.Result{To: 1, Changed: true}, r)
		mended := files(map[string]string{"1_bird.up.sql": "", "2_good.up.sql": "ALTER TABLE bird ADD COLUMN name text;"})
		require.Equal(t, migrator.Result{From: 1, To: 2, Changed: true}, run(t, db, migrator.Options{FS: mended, Command: migrator.Up}))
	})
}

func TestRunsOfSeveralProcessesApplyEachMigrationOnce(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		open(t, url)
		var runs sync.WaitGroup
		for range 4 {
			db := open(t, url) // pools of its own, as another process has them
			runs.Go(func() {
				r, err := migrator.Run(t.Context(), db, migrator.Options{FS: birds, Dir: "m", Command: migrator.Up})
				if err != nil {
					t.Error(err)
				}
				if r.To != 10 {
					t.Errorf("left version %d", r.To)
				}
			})
		}
		runs.Wait()
	})
}

func TestALockThatIsHeldIsAnErrorAfterTheLockTimeout(t *testing.T) {
	all(t, func(t *testing.T, db tx.Database) {
		run(t, db, migrator.Options{Command: migrator.Up, Steps: 1})
		h, err := db.Begin(t.Context(), tx.Attr{})
		require.NoError(t, err)
		_, err = h.Conn().ExecContext(t.Context(), "INSERT INTO bird (id) VALUES (1)")
		require.NoError(t, err)
		_, err = migrator.Run(t.Context(), db, migrator.Options{FS: birds, Dir: "m", Command: migrator.Up, LockTimeout: 50 * time.Millisecond})
		if db.Dialect() != tx.SQLite {
			require.True(t, dberr.IsBusy(err), "%v", err)
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.NoError(t, h.Commit())
	})
}

func TestACancelledRunStopsItsStatement(t *testing.T) {
	each(t, func(t *testing.T, db tx.Database) {
		endless := "SELECT pg_sleep(3600)"
		if db.Dialect() == tx.SQLite {
			endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"
		}
		fsys := files(map[string]string{"1_endless.up.sql": "CREATE TABLE half (id integer); " + endless})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := migrator.Run(ctx, db, migrator.Options{FS: fsys, Dir: "m", Command: migrator.Up})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = db.Conn().ExecContext(t.Context(), "SELECT * FROM half")
		require.Error(t, err)
	})
}

func TestAMigrationWithinAWritingTransactionOfSQLiteIsRefused(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.SQLite(t))
	err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		_, err := migrator.Run(ctx, db, migrator.Options{FS: birds, Dir: "m", Command: migrator.Up})
		return err
	})
	require.ErrorIs(t, err, tx.ErrSingleWriter)
}

func TestWrongOptionsAreRefusedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.SQLite(t))
	for name, c := range map[string]struct {
		options migrator.Options
		says    string
	}{
		"no command":      {migrator.Options{}, `command "" is unknown`},
		"down without n":  {migrator.Options{Command: migrator.Down}, "steps"},
		"no such folder":  {migrator.Options{Command: migrator.Up, Dir: "nowhere"}, "nowhere"},
		"no such version": {migrator.Options{Command: migrator.Goto, Version: 3, Dir: "m"}, "no migration 3"},
	} {
		c.options.FS = birds
		_, err := migrator.Run(t.Context(), db, c.options)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err := migrator.Run(t.Context(), db, migrator.Options{FS: files(map[string]string{"README": ""}), Dir: "m", Command: migrator.Up})
	require.ErrorContains(t, err, "has no migrations")
}

func TestLatestIsTheHighestNumber(t *testing.T) {
	t.Parallel()
	n, err := migrator.Latest(birds, "m")
	require.NoError(t, err)
	require.Equal(t, uint(10), n)
}
