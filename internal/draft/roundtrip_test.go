package draft_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/draft"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

const soak = "SURFIN_SOAK"

func TestATableComesBackFromItsExport(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		cases := map[bool]int{true: 10, false: 40}[strings.HasPrefix(url, "postgres")]
		if given := os.Getenv(soak); given != "" {
			var err error
			cases, err = strconv.Atoi(given)
			require.NoError(t, err, soak)
		}
		e := batchtest.New(t, batchtest.On(url))
		for seed := range cases {
			roundTrip(t, e, url, uint64(seed))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	})
}

func roundTrip(t *testing.T, e *batchtest.Env, url string, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 31)) //nolint:gosec // a test's
	makeTable(e, url, r, seed)
	want := exported(t, e, "a", "a.csv", fmt.Sprint(seed))
	for _, file := range []string{"a.csv", "a.jsonl"} {
		if file == "a.jsonl" {
			exported(t, e, "a", file, fmt.Sprint(seed))
		}
		s, err := draft.Infer(t.Context(), e.Path(file), draft.Options{Whole: true})
		if len(want) == 0 && file == "a.jsonl" {
			require.ErrorContains(t, err, "no row")
			continue
		}
		require.NoError(t, err)
		e.Exec("drop table if exists b")
		copying(t, e, s, draft.Target{Table: "b"}, fmt.Sprint(file, "-", seed))
		got := exported(t, e, "b", "b.csv", fmt.Sprint(seed, "-", file))
		require.Equal(t, len(want), len(got), "%s, seed %d", file, seed)
		for i := range want {
			require.True(t, slices.EqualFunc(want[i], got[i], sameCell), "%s, seed %d:\n%v\n%v\n%s", file, seed, want[i], got[i], s.Item(""))
		}
		for _, f := range []string{"b.csv"} {
			require.NoError(t, os.Remove(e.Path(f)))
		}
	}
	for _, f := range []string{"a.csv", "a.jsonl"} {
		require.NoError(t, os.Remove(e.Path(f)))
	}
}

func sameCell(a, b csv.Cell) bool {
	if a == b {
		return true
	}
	x, errX := row.ParseDecimal(a.Text)
	y, errY := row.ParseDecimal(b.Text)
	return errX == nil && errY == nil && x.Equal(y)
}

func exported(t *testing.T, e *batchtest.Env, table, file, side string) (rows [][]csv.Cell) {
	t.Helper()
	s, err := draft.InferTable(t.Context(), e.Database(""), table)
	require.NoError(t, err)
	copying(t, e, s, draft.Target{File: e.Path(file)}, table+side+file)
	if !strings.HasSuffix(file, ".csv") {
		return nil
	}
	ctx := context.Background()
	in, err := csv.OpenSample(ctx, csv.SampleConfig{Path: e.Path(file)})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close(ctx)) }()
	for {
		cells, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		cells = slices.Clone(cells)
		for i := range cells {
			cells[i].Text = strings.Clone(cells[i].Text)
			cells[i].Quoted = cells[i].Text == "" && (cells[i].Quoted || !s.Fields[i].Nullable) // not null
		}
		rows = append(rows, cells)
	}
	slices.SortStableFunc(rows, func(a, b []csv.Cell) int { return strings.Compare(a[0].Text, b[0].Text) })
	return rows
}

func copying(t *testing.T, e *batchtest.Env, s *draft.Shape, to draft.Target, side string) {
	t.Helper()
	text, err := s.Copy(to, draft.Sides{From: side, To: side})
	require.NoError(t, err)
	path := e.File("copy.yaml", strings.Replace(text, "job: copy", "job: copy-"+side, 1)) // its own instance
	run, err := e.Launch(path)
	require.NoError(t, err, text)
	require.Equal(t, "COMPLETED", string(run.Execution.Status), "%s\n%s", run, text)
}

func makeTable(e *batchtest.Env, url string, r *rand.Rand, seed uint64) {
	e.Exec("drop table if exists a")
	isPostgres := strings.HasPrefix(url, "postgres")
	texts := []any{"", "x", "NA", "NULL", "null", `\N`, "-", "n/a", "a,b", `say "hi"`, "two\r\nlines", "l\nf", " lead", "trail ", "007", "1E5", "true", "12", "2026-01-02", "[1]", "[1, 2]", `{"a":1}`, "é", "1.10", ";", "\t", "89014103211118510720", "2026-01-02T03:04:05Z", "'"}
	words := []any{"NA", "", "NULL", "-", `\N`}
	type kind struct {
		types  [2]string // of SQLite, of PostgreSQL
		values []any
	}
	kinds := []kind{
		{[2]string{"text", "text"}, texts}, {[2]string{"text", "text"}, words}, {[2]string{"text", "varchar(40)"}, []any{"", "a"}}, {[2]string{"text", "text"}, []any{"", "1", "2"}},
		{[2]string{"integer", "bigint"}, []any{0, -1, 7, 9007199254740993, 9223372036854775807}},
		{[2]string{"decimal(12,2)", "numeric(12,2)"}, []any{"1.10", "0.00", "-3.05", "1234567890.12"}},
		{[2]string{"double precision", "double precision"}, []any{0.1, 1e300, -2.5, 1e-7, 3.0, 123456789.125}},
		{[2]string{"boolean", "boolean"}, []any{true, false}},
		{[2]string{"date", "date"}, []any{"2026-01-02", "1906-12-09", "2000-02-29"}},
		{[2]string{"timestamp", "timestamp"}, []any{"2026-01-02 03:04:05", "1999-12-31 23:59:59.123456"}},
		// A single text in a column of JSON is a text of jsonl.
		{[2]string{"json text", "jsonb"}, []any{`{"a": 1, "b": [true, null]}`, `[1]`, `7`, `{}`}},
		{[2]string{"uuid", "uuid"}, []any{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "c0ffee00-0000-4000-8000-000000000001"}},
		{[2]string{"blob", "bytea"}, []any{[]byte{}, []byte{0, 255}, []byte("abc")}},
	}
	at := map[bool]int{true: 1, false: 0}[isPostgres]
	columns, values := []string{"id bigint primary key"}, [][]any{nil}
	single := r.IntN(6) == 0
	if single {
		columns, values = nil, nil
	}
	for i := range 1 + r.IntN(4) {
		k := kinds[r.IntN(len(kinds))]
		columns, values = append(columns, fmt.Sprintf(`"C %d" %s`, i, k.types[at])), append(values, k.values)
		if single {
			break
		}
	}
	e.Exec("create table a (" + strings.Join(columns, ", ") + ")")
	for i := range r.IntN(7) {
		var marks []string
		var row []any
		for k, of := range values {
			marks = append(marks, map[bool]string{true: fmt.Sprintf("$%d", k+1), false: "?"}[isPostgres])
			switch {
			case of == nil:
				row = append(row, i)
			case r.IntN(4) == 0:
				row = append(row, nil)
			default:
				row = append(row, of[r.IntN(len(of))])
			}
		}
		e.Exec("insert into a values ("+strings.Join(marks, ", ")+fmt.Sprintf(") -- %d", seed), row...) // a distinct statement for each seed
	}
}
