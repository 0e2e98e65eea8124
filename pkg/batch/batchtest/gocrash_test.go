package batchtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

func TestAJobInGoSurvivesAKillAtEveryCommit(t *testing.T) {
	for name, partition := range map[string]*batch.Partitioned{
		"plain":       nil,
		"partitioned": {By: batch.Use("count", batch.Config{"parts": 3}), Workers: 2},
		"remote":      {By: batch.Use("count", batch.Config{"parts": 3}), Remote: true},
	} {
		t.Run(name, func(t *testing.T) {
			batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
				path := "${params.folder}/in.csv"
				if partition != nil {
					path = "${params.folder}/in${string(part.index)}.csv"
				}
				c.Go = batch.NewJob("loads").
					Parameter(batch.Parameter{Name: "folder", Type: "path"}).
					Step("make", batch.Use("sql", "create table line (id bigint primary key, name varchar(20))")).
					Step("load", batch.Chunk{
						Size:    2,
						Reader:  batch.Use("csv", batch.Config{"path": path, "item": batch.Config{"id": "int", "name": "string"}}),
						Writers: []batch.Component{batch.Use("table", batch.Config{"name": "line", "key": []string{"id"}})},
					}, batch.With{Partition: partition})
				c.Params = []string{"folder=" + c.Dir()}
				c.Every = 2
				c.Worker = partition != nil && partition.Remote
				c.Setup = func(_ *testing.T, e *batchtest.Env) {
					for part := range 3 {
						var lines strings.Builder
						lines.WriteString("id,name\n")
						for i := range 5 {
							fmt.Fprintf(&lines, "%d,name %d\n", 10*part+i, i)
						}
						e.File(fmt.Sprintf("in%d.csv", part), lines.String())
						if part == 0 {
							e.File("in.csv", lines.String())
						}
					}
				}
			})
		})
	}
}
