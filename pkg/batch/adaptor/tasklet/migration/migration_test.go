package migration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func each(t *testing.T, f func(t *testing.T, p tx.Provider, db tx.Database)) {
	t.Helper()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: url}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		db, err := p.Database("")
		require.NoError(t, err)
		f(t, p, db)
	})
}

var birds = fstest.MapFS{
	"sql/1_bird.up.sql":   {Data: []byte("create table bird (id integer primary key, name text); insert into bird values (1, 'wren');")},
	"sql/1_bird.down.sql": {Data: []byte("drop table bird;")},
	"sql/2_wing.up.sql":   {Data: []byte("alter table bird add column wing integer;")},
	"sql/2_wing.down.sql": {Data: []byte("alter table bird drop column wing;")},
}

func run(t *testing.T, p tx.Provider, c config) *core.StepContribution {
	t.Helper()
	c.Source = "birds"
	task, err := newTasklet(p, []Source{{Name: "birds", FS: birds, Dir: "sql"}}, c)
	require.NoError(t, err)
	contribution := &core.StepContribution{}
	require.NoError(t, task.Execute(context.Background(), contribution))
	return contribution
}

func ptr(n int) *int { return &n }

type queryReader interface {
	item.Opener
	item.RecordReader
}

type tableWriter interface {
	item.Opener
	item.RecordWriter
}

func readAll(t *testing.T, db tx.Database, text string) (rows []string) {
	t.Helper()
	open, err := row.Open()
	require.NoError(t, err)
	r, err := testcomponent.Make[queryReader](query.Components(), registry.KindReader, testcomponent.Settings{
		"sql": registry.SQL{Parts: []string{text}}, "key": []string{"id"},
	}, registry.BuildContext{Databases: testcomponent.On{DB: db}, Out: item.RowOf("", open)})
	require.NoError(t, err)
	require.NoError(t, r.Open(context.Background(), nil))
	for {
		record := make([]row.Value, r.Schema().Len())
		if err := r.ReadRecord(context.Background(), record); err != nil {
			return rows
		}
		text := ""
		for _, v := range record {
			text += v.String() + " "
		}
		rows = append(rows, text)
	}
}

func TestAColumnIsAddedWhileATransactionInFlightCommitsUndisturbed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p tx.Provider, db tx.Database) {
		c := run(t, p, config{Steps: ptr(1)})
		require.Equal(t, map[string]any{"from": int64(0), "to": int64(1), "changed": true}, c.Out)
		require.Len(t, readAll(t, db, "select * from bird"), 1, "the statement is prepared on the old connections")

		ctx := context.Background()
		began, migrated, flown := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		// A writing transaction would hold SQLite's one writer, and the migration would wait for it: there
		// the one in flight reads.
		attr := tx.Attr{ReadOnly: db.Dialect() == tx.SQLite}
		if !attr.ReadOnly {
			_, err := db.Conn().ExecContext(ctx, "create table nest (id integer)")
			require.NoError(t, err)
		}
		go func() {
			flown <- tx.NewManager(db).Do(ctx, attr, func(ctx context.Context) error {
				work := func() error {
					conn := tx.ConnOf(ctx, db)
					if attr.ReadOnly {
						var n int
						return conn.QueryRowContext(ctx, "select count(*) from bird").Scan(&n)
					}
					_, err := conn.ExecContext(ctx, "insert into nest values (1)")
					return err
				}
				err := work()
				close(began)
				<-migrated
				if err != nil {
					return err
				}
				return work()
			})
		}()
		<-began
		c = run(t, p, config{})
		require.Equal(t, map[string]any{"from": int64(1), "to": int64(2), "changed": true}, c.Out)
		close(migrated)
		require.NoError(t, <-flown)
		if !attr.ReadOnly {
			var n int
			require.NoError(t, db.Conn().QueryRowContext(ctx, "select count(*) from nest").Scan(&n))
			require.Equal(t, 2, n)
		}

		schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "wing", Kind: row.Int})
		require.NoError(t, err)
		w, err := testcomponent.Make[tableWriter](table.Components(), registry.KindWriter, testcomponent.Settings{
			"name": "bird", "mode": "upsert", "key": []string{"id"},
		}, registry.BuildContext{Databases: testcomponent.On{DB: db}, In: item.RowOf("", schema)})
		require.NoError(t, err)
		require.NoError(t, w.Open(ctx, nil))
		require.NoError(t, tx.NewManager(db).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
			return w.WriteRecords(ctx, schema, [][]row.Value{{row.IntValue(1), row.IntValue(18)}, {row.IntValue(2), row.IntValue(20)}})
		}))
		require.Equal(t, []string{"1 wren 18 ", "2 null 20 "}, readAll(t, db, "select * from bird"))
	})
}

func TestEveryCommandSaysFromWhereToWhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p tx.Provider, _ tx.Database) {
		for _, step := range []struct {
			config   config
			from, to int64
			changed  bool
		}{
			{config{Command: migrator.Version}, 0, 0, false},
			{config{}, 0, 2, true},
			{config{}, 2, 2, false},
			{config{Command: migrator.Down, Steps: ptr(1)}, 2, 1, true},
			{config{Command: migrator.Goto, Version: ptr(2)}, 1, 2, true},
			{config{Command: migrator.Force, Version: ptr(1)}, 2, 1, true},
			{config{Command: migrator.Force, Version: ptr(2)}, 1, 2, true},
			{config{Command: migrator.Goto, Version: ptr(0)}, 2, 0, true},
		} {
			step.config.Table = "bird_migrations"
			c := run(t, p, step.config)
			require.Equal(t, map[string]any{"from": step.from, "to": step.to, "changed": step.changed}, c.Out, "%+v", step.config)
		}
	})
}

func TestAFailedMigrationReportsWhatWasReached(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p tx.Provider, _ tx.Database) {
		dir := t.TempDir()
		for name, text := range map[string]string{"1_ok.up.sql": "create table ok (id integer);", "2_bad.up.sql": "create tabel bad (id integer);"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		task, err := newTasklet(p, nil, config{Dir: dir, LockTimeout: time.Second})
		require.NoError(t, err)
		c := &core.StepContribution{}
		err = task.Execute(context.Background(), c)
		require.ErrorContains(t, err, "tabel")
		require.Equal(t, true, c.Out["changed"])
	})
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config config
		key    string
	}{
		{config{}, "dir"},
		{config{Dir: "a", Source: "b"}, "source"},
		{config{Dir: "a", Command: "sideways"}, "command"},
		{config{Dir: "a", Command: migrator.Down}, "steps"},
		{config{Dir: "a", Command: migrator.Goto}, "version"},
		{config{Dir: "a", Command: migrator.Goto, Version: ptr(-1)}, "version"},
		{config{Dir: "a", Command: migrator.Force, Version: ptr(-2)}, "version"},
		{config{Dir: "a", Version: ptr(1)}, "version"},
		{config{Dir: "a", Command: migrator.Version, Steps: ptr(1)}, "steps"},
		{config{Dir: "a", Steps: ptr(0)}, "steps"},
		{config{Dir: "a", LockTimeout: -1}, "lock_timeout"},
	} {
		err := c.config.Validate()
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at, "%+v", c.config)
		require.Equal(t, c.key, at.Key)
	}
	_, err := Components(nil)[0].Types(&config{Dir: filepath.Join(t.TempDir(), "nowhere")}, nil)
	require.ErrorContains(t, err, "there is no folder")
	p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: testdb.SQLite(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	_, err = newTasklet(p, []Source{{Name: "birds"}}, config{Source: "brids"})
	require.ErrorContains(t, err, "did you mean birds?")
}

func TestTheComponentKnowsTheMigrationsThatTheApplicationCarries(t *testing.T) {
	t.Parallel()
	p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: testdb.SQLite(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	component := Components([]Source{{Name: "birds", FS: birds, Dir: "sql"}})[0]
	_, err = component.New(context.Background(), &config{Source: "birds"}, registry.BuildContext{Databases: p})
	require.NoError(t, err)
}
