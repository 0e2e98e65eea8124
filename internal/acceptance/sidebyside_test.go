package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// Elements of a branch that hold one connection and need another one; @ is the branch.
const (
	comparing = `{step: c@, tasklet: {compare: {left: {sql: "select id, v from u"}, right: {sql: "select id, v from u"}, key: [id]}}}`
	snapshots = `{step: s@, chunk: {size: 3, reader: {query: {sql: "select id, v from u", snapshot: true, item: {id: int, v: int}}}, ` +
		`processor: [{dedupe: [id]}, {lookup: {table: u, item: {id: int, v: int}, key: {id: item.id}, prefix: looked_up_}}, {map: {only: true, id: item.id, b: "@"}}], writer: {table: t}}}`
	suspending = `{atomic: g@, steps: [{step: a@, tasklet: {sql: "insert into t values (1, @)"}}, ` +
		`{step: b@, tasklet: {sql: "insert into t values (2, @)"}, transaction: {propagation: REQUIRES_NEW}}]}`
)

func TestWorkSideBySideDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var b strings.Builder
		b.WriteString("job: side\nflow:\n")
		elements := []string{comparing, snapshots, suspending}
		if strings.HasPrefix(url, "sqlite") { // it has one writer, and refuses REQUIRES_NEW
			elements = elements[:2]
		}
		for kind, element := range elements {
			fmt.Fprintf(&b, "- split: split%d\n  branches:\n", kind)
			for i := range 24 {
				fmt.Fprintf(&b, "  - [%s]\n", strings.ReplaceAll(element, "@", fmt.Sprint(i)))
			}
		}
		s := newScene(t, url, map[string]string{"side.yaml": b.String()})
		s.env = []string{"SURFIN_DATABASES_DEFAULT_MAX_OPEN=3"}
		db, _ := s.open()
		for _, sql := range []string{
			"create table t (id int, b int)", "create table u (id int primary key, v int)", "insert into u values (1, 1), (2, 2), (3, 3), (4, 4)",
		} {
			_, err := db.Conn().ExecContext(t.Context(), sql)
			require.NoError(t, err)
		}
		code, out := s.run("run", "side.yaml")
		require.Zero(t, code, out)
		rows := int64(24 * 4)
		if len(elements) == 3 {
			rows += 24 * 2
		}
		require.Equal(t, []int64{rows}, s.ints(db, "select count(*) from t", 1))
	})
}
