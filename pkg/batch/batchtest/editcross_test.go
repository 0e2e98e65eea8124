package batchtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rules C18, F4a.
func TestACorrectedStepWithDataInAnotherDatabaseIsJudgedByItsCheckpoint(t *testing.T) {
	t.Parallel()
	postgres, sqlite := testdb.Postgres, testdb.EmptySQLite
	for name, urls := range map[string][2]string{
		"sqlite and postgres": {sqlite(t), postgres(t)}, "postgres and sqlite": {postgres(t), sqlite(t)},
	} {
		t.Run(name, func(t *testing.T) {
			e := batchtest.New(t, batchtest.OnDatabase(tx.Default, urls[0]), batchtest.OnDatabase("data", urls[1]))
			in := e.File("in.csv", "id,name,amount\n1,a,1\n2,b,2\n4,c,3\n5,d,4\nx,e,5\n")
			mistake := strings.Replace(crossJob, "name: string,", "nom: string,", 1)
			e.Job(e.File("job.yaml", mistake), "input="+in).Failed("nom")
			failed := e.Job(e.File("job.yaml", crossJob), "input="+in).Failed("not an int")
			require.EqualValues(t, 4, failed.Step("load").Counters.Write, "the corrected step began: nothing was committed")

			// The process dies before its record follows the checkpoint.
			e.Exec("update surfin_step_execution set position = '', read_count = 0, write_count = 0, filter_count = 0, commit_count = 0, in_hand_counts = ''")
			_, err := e.Launch(e.File("job.yaml", strings.Replace(crossJob, "amount: float}", "amount: float null}", 1)), "input="+in)
			var changed *jobfile.ChangedError
			require.ErrorAs(t, err, &changed)
			require.Contains(t, changed.Error(), "step load has committed work with reader csv: item")
			require.Contains(t, changed.Diff, "-    reader: {csv: {path: \"${params.input}\", item: {id: int, name: string, amount: float}}}\n")

			again := e.Job(e.File("job.yaml", crossJob), "input="+in).Failed("not an int")
			require.Zero(t, again.Step("load").Counters.Read, "it continues at the checkpoint")
		})
	}
}
