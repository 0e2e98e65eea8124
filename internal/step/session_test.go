package step_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func statements(e *testengine.Engine, raw bool, list ...string) core.TaskletFunc {
	return func(ctx context.Context, _ *core.StepContribution) error {
		for _, text := range list {
			err := error(nil)
			if raw {
				err = tx.ConnOf(ctx, e.Database).Raw(ctx, func(driverConn any) error {
					return driverConn.(*stdlib.Conn).Conn().PgConn().Exec(ctx, text).Close()
				})
			} else {
				_, err = tx.ConnOf(ctx, e.Database).ExecContext(ctx, text)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	}
}

// Rule T8b.
func TestWhatAStepChangesOfItsSessionEndsWithIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, poll, want string }{
		"a setting":         {"set search_path = public", "show search_path", `"$user", public`},
		"by a function":     {"select set_config('work_mem', '8MB', false)", "show work_mem", "4MB"},
		"of the author's":   {"select change_it()", "show work_mem", "4MB"},
		"a role":            {"set role pg_monitor", "select (current_user = session_user)::text", "true"},
		"a temporary table": {"create temporary table t(id int)", "select coalesce(to_regclass('pg_temp.t')::text, 'none')", "none"},
		"a lock":            {"select pg_advisory_lock(7)", "select count(*)::text from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())", "0"},
		"a prepared plan":   {"prepare p as select 1", "select count(*)::text from pg_prepared_statements where from_sql", "0"},
		"what is listened":  {"listen news", "select count(*)::text from pg_listening_channels()", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testengine.New(t, testdb.Postgres(t))
			e.Exec("create function change_it() returns void language plpgsql as $$ begin perform set_config('work_mem', '9MB', false); end $$")
			for _, raw := range []bool{false, true} {
				for _, attr := range []tx.Attr{{}, {Propagation: tx.NotSupported}} {
					if c.change[:8] == "set role" && attr.Propagation == "" {
						continue // the role may not record the end of its step
					}
					var got []string
					exec := e.Run(testengine.Job(fmt.Sprintf("j%v%s", raw, attr.Propagation), e.Tasklet("change", attr, statements(e, raw, c.change)),
						e.Tasklet("look", attr, func(ctx context.Context, _ *core.StepContribution) error {
							// A heartbeat may hold the connection when its step ends: a lock goes when
							// the heartbeat gives the connection back.
							until := time.Now().Add(5 * time.Second)
							for len(got) < 3 {
								var text string
								if err := tx.ConnOf(ctx, e.Database).QueryRowContext(ctx, c.poll).Scan(&text); err != nil {
									return err
								}
								if name != "a lock" || text == c.want || time.Now().After(until) {
									got = append(got, text)
								}
							}
							return nil
						})))
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
					require.Equal(t, []string{c.want, c.want, c.want}, got)
				}
			}
		})
	}
}

func TestPreparedStatementsOutliveTheResetOfASession(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.Postgres(t))
	ask := func(ctx context.Context, _ *core.StepContribution) error {
		var n, pid int
		return tx.ConnOf(ctx, e.Database).QueryRowContext(ctx, "select $1::int, pg_backend_pid()", 1).Scan(&n, &pid)
	}
	list := []*model.StepElement{}
	for i := range 3 {
		list = append(list, e.Tasklet(fmt.Sprintf("ask%d", i), tx.Attr{}, ask),
			e.Tasklet(fmt.Sprintf("change%d", i), tx.Attr{}, statements(e, false, "set work_mem = '8MB'; select 1")))
	}
	exec := e.Run(testengine.Job("job", list...))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
}

func TestWhatAStepChangesOfASQLiteConnectionEndsWithIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, poll, want string }{
		"a setting":         {"pragma foreign_keys = off", "pragma foreign_keys", "1"},
		"a temporary table": {"create temp table t(id int)", "select count(*) from sqlite_temp_master", "0"},
		"another file":      {"attach ':memory:' as other", "select count(*) from pragma_database_list where name = 'other'", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testengine.New(t, testdb.SQLite(t))
			var got string
			outside := tx.Attr{Propagation: tx.NotSupported}
			exec := e.Run(testengine.Job("job", e.Tasklet("change", outside, statements(e, false, c.change)),
				e.Tasklet("look", tx.Attr{}, func(ctx context.Context, _ *core.StepContribution) error {
					return tx.ConnOf(ctx, e.Database).QueryRowContext(ctx, c.poll).Scan(&got)
				})))
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Equal(t, c.want, got)
		})
	}
}
