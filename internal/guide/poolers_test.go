package guide

import (
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

func TestTheSettingsOfThePoolerServeAJob(t *testing.T) {
	t.Parallel()
	_, settings, _ := strings.Cut(block(t, page(t, "docs/howto/poolers.md"), "ini"), "[pgbouncer]\n")
	settings = strings.Replace(settings, "default_pool_size = 42", "default_pool_size = 14", 1)
	e := batchtest.New(t, batchtest.On(testdb.Pooled(t, testdb.Postgres(t), "session", settings)))
	e.File("orders.csv", "id,customer,amount\n1,c,5.00\nx,c,1\n2,c,-1\n3,d,7.00\n")
	text := section(t, "\n"+page(t, "docs/fault-tolerance.md"), "# Fault tolerance")
	e.Job(e.File("orders.yaml", block(t, text, "yaml"))).Completed()
	e.HasRows("select id, amount from orders order by id", "1|5", "3|7")
}
