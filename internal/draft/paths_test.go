package draft_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

func TestAKeyWithADotAndAPathAreTwoFields(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		path := e.File("in.jsonl", `{"id":1,"a.b":1,"a":{"b":7,"b.c":8,"c":{"d":9}},"a.c.d":2}`+"\n"+`{"id":2,"a":{"b":6,"c":{"d":5}}}`+"\n")
		s, err := draft.Infer(t.Context(), path, draft.Options{})
		require.NoError(t, err)
		copying(t, e, s, draft.Target{Table: "flat"}, "flat")
		e.HasRows("select a_b, a_b_2, a_b_c, a_c_d, a_c_d_2 from flat order by id", "1|7|8|9|2", "NULL|6|NULL|5|NULL")

		s, err = draft.Infer(t.Context(), path, draft.Options{Whole: true})
		require.NoError(t, err)
		copying(t, e, s, draft.Target{File: e.Path("out.jsonl")}, "whole")
		s, err = draft.Infer(t.Context(), e.Path("out.jsonl"), draft.Options{Whole: true})
		require.NoError(t, err)
		require.Equal(t, `["a.b"]`, s.Fields[1].From)
	})
}

// SQLite drops trailing zeros of a decimal; the type of the column that copy
// creates keeps their number.
func TestZerosAtTheEndComeBackFromATable(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		const text = "id,v,w\n1,1.5,2.00\n2,,3.10\n3,2.0,1.00\n"
		s, err := draft.Infer(t.Context(), e.File("in.csv", text), draft.Options{})
		require.NoError(t, err)
		copying(t, e, s, draft.Target{Table: "z", Key: []string{"id"}, Mode: "upsert"}, "in")
		s, err = draft.InferTable(t.Context(), e.Database(""), "z")
		require.NoError(t, err)
		copying(t, e, s, draft.Target{File: e.Path("out.csv")}, "out")
		out, err := os.ReadFile(e.Path("out.csv"))
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	})
}
