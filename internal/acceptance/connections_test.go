package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const snapshotOf = `{query: {sql: "select id, v as %s from u", snapshot: true, item: {id: int, %s: int}}}`

// Rule O4.
func TestAStepThatNeedsMoreConnectionsThanItsPoolHasIsRefused(t *testing.T) {
	t.Parallel()
	merged := fmt.Sprintf("{merge: {key: [id], left: %s, right: %s}}", fmt.Sprintf(snapshotOf, "v", "v"), fmt.Sprintf(snapshotOf, "w", "w"))
	for name, c := range map[string]struct {
		flow, postgres, sqlite string // the reason for its refusal; empty means that it runs
	}{
		"two snapshots, and keys outside": {
			flow:     `- {step: s, chunk: {reader: ` + merged + `, processor: [{dedupe: [id]}, {map: {only: true, id: item.id}}], writer: {table: t}}}`,
			postgres: "step s needs 4 connections of database default at once, and its pool has 3 (2 kept open while rows are read, 1 for the transaction of the step, 1 to read during that transaction): it would wait for itself",
		},
		"two snapshots": {flow: `- {step: s, chunk: {reader: ` + merged + `, processor: {map: {only: true, id: item.id}}, writer: {table: t}}}`},
		"a group, and both sides": {
			flow: `- {atomic: g, steps: [{step: a, tasklet: {sql: "insert into t values (1)"}}, {step: s, tasklet: {compare: {left: {table: u}, right: {table: u}, key: [id]}}, transaction: {propagation: NOT_SUPPORTED}}]}`,
		},
		"lookups, one after another, the first with two snapshots": {
			flow: `- {step: s, chunk: {reader: ` + fmt.Sprintf(snapshotOf, "v", "v") + `, processor: [{lookup: {from: ` + merged + `, key: {id: item.id}, take: [w]}}, {lookup: {from: ` + fmt.Sprintf(snapshotOf, "x", "x") + `, key: {id: item.id}}}, {map: {only: true, id: item.id}}], writer: {table: t}}}`,
		},
		"a lookup with more snapshots than connections": {
			flow:     `- {step: s, chunk: {reader: ` + merged + `, processor: [{lookup: {from: ` + merged + `, key: {id: item.id}, prefix: more_}}, {map: {only: true, id: item.id}}], writer: {table: t}}}`,
			postgres: "step s needs 4 connections of database default at once, and its pool has 3 (2 kept open while rows are read, 2 to read pages and rows to look up): it would wait for itself",
			sqlite:   "step s needs 4 connections of database default at once, and its pool has 3 (2 kept open while rows are read, 2 to read pages and rows to look up): it would wait for itself",
		},
		"a step that never runs": {
			flow: `- {step: s, when: "1 > 2", chunk: {reader: ` + merged + `, processor: [{dedupe: [id]}, {map: {only: true, id: item.id}}], writer: {table: t}}}`,
		},
		"a step of a flow that never runs": {
			flow: `- {flow: f, when: "false", steps: [{step: s, chunk: {reader: ` + merged + `, processor: [{dedupe: [id]}, {map: {only: true, id: item.id}}], writer: {table: t}}}]}`,
		},
		"both sides": {flow: `- {step: s, tasklet: {compare: {left: {table: u}, right: {table: u}, key: [id]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				s := newScene(t, url, map[string]string{"j.yaml": "job: j\nflow:\n" + c.flow + "\n", "surfin.yaml": "databases:\n  default: {max_open: 3}\n"})
				db, _ := s.open()
				s.exec(db, "create table t (id int)", "create table u (id int primary key, v int)", "insert into u values (1, 1), (2, 2)")
				want := c.postgres
				if strings.HasPrefix(url, "sqlite:") {
					want = c.sqlite
				}
				for _, more := range [][]string{{"--dry-run"}, nil} {
					code, out := s.run(append([]string{"run", "j.yaml"}, more...)...)
					if want == "" {
						require.Equal(t, 0, code, out)
						continue
					}
					require.Equal(t, 2, code, out)
					require.Contains(t, out, want)
					require.Contains(t, out, "raise max_open of the database to 4")
				}
			})
		})
	}
}
