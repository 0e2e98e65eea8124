package batchtest_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const listsJob = `
job: lists
types:
  lists:
    id: int
    strings: list of string null
    ints: list of int null
    floats: list of float null
    decimals: list of decimal null
    bools: list of bool null
    dates: {type: list of date null, format: dd.MM.yyyy}
    timestamps: list of timestamp null
    uuids: list of uuid null
    parts: {type: list of int null, separator: ";"}
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: lists}}
    writer: {table: {name: lists, create: true}}
- step: copy
  chunk:
    reader: {query: {sql: "select * from lists", key: [id]}}
    writer: {table: {name: copied, create: true, mode: truncate}}
- step: export
  chunk:
    reader: {query: {sql: "select * from copied", key: [id]}}
    writer: {jsonl: out.jsonl}
`

// Rule D13.
func TestListsComeBackFromBothDatabasesAsTheyWere(t *testing.T) {
	t.Parallel()
	var in bytes.Buffer
	var want []string
	w := csv.NewWriter(&in)
	require.NoError(t, w.Write([]string{"id", "strings", "ints", "floats", "decimals", "bools", "dates", "timestamps", "uuids", "parts"}))
	rapid.Check(t, func(t *rapid.T) {
		for _, lists := range rapid.SliceOfN(rapid.Custom(listRow), 1, 8).Draw(t, "rows") {
			id := len(want)
			cells, doc := []string{fmt.Sprint(id)}, fmt.Sprintf(`{"id":%d`, id)
			for _, l := range lists {
				cells, doc = append(cells, l.text), doc+fmt.Sprintf(`,%q:%s`, l.name, l.doc)
			}
			require.NoError(t, w.Write(cells))
			want = append(want, doc+"}")
		}
	})
	w.Flush()
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url))
		e.File("in.csv", in.String())
		e.Job(e.File("lists.yaml", listsJob)).Completed()
		out, err := os.ReadFile(e.Path("out.jsonl"))
		require.NoError(t, err)
		got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	})
}

type aList struct{ name, text, doc string }

func listRow(t *rapid.T) []aList {
	text := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune(`ab ,;"\{}[]'null`)), rapid.Rune().Filter(func(r rune) bool { return r != 0 && r != '\uFFFD' })))
	micros := rapid.Int64Range(row.NewDate(1, 1, 1).Time().UnixMicro(), row.NewDate(9999, 12, 31).Time().UnixMicro())
	decimal := rapid.Custom(func(t *rapid.T) row.Decimal {
		d, err := row.NewDecimal(rapid.Int64().Draw(t, "digits"), rapid.IntRange(0, 20).Draw(t, "scale"))
		require.NoError(t, err)
		return d
	})
	dates := listOf(t, "dates", rapid.Map(micros, func(m int64) row.Date { return row.DateOf(time.UnixMicro(m).UTC()) }))
	if dates.text != "" {
		var elements []*string
		require.NoError(t, json.Unmarshal([]byte(dates.doc), &elements))
		for i, e := range elements {
			if e != nil {
				elements[i] = new(string)
				*elements[i] = (*e)[8:] + "." + (*e)[5:7] + "." + (*e)[:4]
			}
		}
		formatted, err := json.Marshal(elements)
		require.NoError(t, err)
		dates.text = string(formatted)
	}
	parts := aList{"parts", "", "null"}
	if ints := rapid.SliceOf(rapid.Int64()).Draw(t, "parts"); len(ints) > 0 {
		doc, err := json.Marshal(ints)
		require.NoError(t, err)
		parts.doc, parts.text = string(doc), strings.ReplaceAll(strings.Trim(string(doc), "[]"), ",", ";")
	}
	return []aList{
		listOf(t, "strings", text), listOf(t, "ints", rapid.Int64()), listOf(t, "floats", rapid.Float64()), listOf(t, "decimals", decimal), listOf(t, "bools", rapid.Bool()),
		dates, listOf(t, "timestamps", rapid.Map(micros, func(m int64) time.Time { return time.UnixMicro(m).UTC() })),
		listOf(t, "uuids", rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) row.UUID { return row.UUID(b) })), parts,
	}
}

func listOf[T any](t *rapid.T, name string, element *rapid.Generator[T]) aList {
	if rapid.Bool().Draw(t, "null") {
		return aList{name, "", "null"}
	}
	v, err := row.ValueOf(rapid.SliceOfN(rapid.Ptr(element, true), 0, 4).Draw(t, name))
	require.NoError(t, err)
	return aList{name, v.String(), v.String()}
}
