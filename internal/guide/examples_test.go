package guide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTheExamplesLoseNothingButWhatTheySayTheySkip(t *testing.T) {
	t.Parallel()
	for _, example := range []struct{ page, heading, commits string }{
		{"docs/fault-tolerance.md", "# Fault tolerance", "1000"},
		{"README.md", "## A job is a YAML file", "1000"},
	} {
		t.Run(example.page, func(t *testing.T) {
			t.Parallel()
			text := section(t, "\n"+page(t, example.page), example.heading)
			testdb.Each(t, func(t *testing.T, url string) {
				e := batchtest.New(t, batchtest.On(url))
				lines := []string{"id,customer,amount"}
				for i := 1; i <= 2500; i++ {
					lines = append(lines, fmt.Sprintf("%d,c%d,%d.50", i, i%7, i%90+1))
				}
				lines[617], lines[1200], lines[1700] = "617,c1,free", "1200,c2,-5", "1500,c3,7.00"
				e.File("orders.csv", strings.Join(lines, "\n")+"\n")
				r := e.Job(e.File("orders.yaml", block(t, text, "yaml"))).Completed()
				c := r.Step("load").Counters
				require.Equal(t, core.Counters{Read: 2499, Write: 2497, ReadSkip: 1, ProcessSkip: 1, WriteSkip: 1, Commit: c.Commit, Rollback: c.Rollback}, c)
				require.Equal(t, example.commits, fmt.Sprint(c.Commit))
				e.HasRows("select count(*), count(distinct id) from orders", "2497|2497")
				var classes []string
				for _, s := range r.Skipped("load") {
					classes = append(classes, s.Class)
				}
				require.Equal(t, []string{"parse", "validate", "unique"}, classes)
			})
		})
	}
}

func TestTheGuideNamesEveryErrorClassThatThereIs(t *testing.T) {
	t.Parallel()
	text := section(t, page(t, "docs/fault-tolerance.md"), "## Error classes")
	for _, m := range errorclass.Stock() {
		require.Regexp(t, "`"+m.Name+"[`(]", text)
	}
}
