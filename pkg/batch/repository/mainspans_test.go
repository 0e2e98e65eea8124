package repository_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestTheStepsOfAnExecutionAreReadWithoutTheirParts(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		exec := func(text string) {
			_, err := db.Conn().ExecContext(t.Context(), strings.ReplaceAll(text, "{at}", gormtx.Now(db.Dialect())))
			require.NoError(t, err, text)
		}
		exec("INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) VALUES (1, 'j', 'k', {at})")
		exec("INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, owner, epoch, created_at) VALUES (1, 1, 'j', 1, 'COMPLETED', 'o', 1, {at})")
		step := "INSERT INTO surfin_step_execution (id, job_execution_id, job_name, name, status, owner, epoch, started_at, manager_id) "
		exec(step + "VALUES (1, 1, 'j', 's', 'COMPLETED', 'o', 1, {at}, NULL)")
		exec(step + "SELECT n + 1, 1, 'j', 's:' || n, 'COMPLETED', 'o', 1, {at}, 1 FROM (" + numbers(db.Dialect(), 30_000) + ") AS x")
		exec(step + "VALUES (40000, 1, 'j', 'last', 'COMPLETED', 'o', 1, {at}, NULL)")
		if db.Dialect() == tx.Postgres {
			exec("ANALYZE")
		}
		w := &watched{Database: db}
		found, err := repository.New(w, repository.Options{}).MainSpans(t.Context(), 1, 0, 5000)
		require.NoError(t, err)
		require.Equal(t, "s last", fmt.Sprint(found[0].Name, " ", found[1].Name))
		plan := planOf(t, db, w.queries[0])
		require.Contains(t, plan, "step_execution_main", plan)
		require.LessOrEqual(t, rowsRead(t, plan), 20, plan)
	})
}
