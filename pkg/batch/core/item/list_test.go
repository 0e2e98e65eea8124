package item_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type color string

type lists struct {
	Tags    []string `separator:";"`
	Colors  []color
	Small   []int8
	Counts  []uint64
	Maybe   []*int64
	Ratios  []float32
	Amounts []row.Decimal `scale:"2"`
	Flags   []bool
	Days    []row.Date `format:"dd.MM.yyyy"`
	Times   []time.Time
	Keys    []row.UUID
	Others  []*libraryUUID
}

// Rule D13.
func TestGoSlicesAreLists(t *testing.T) {
	t.Parallel()
	typ := item.TypeOf[lists]("lists")
	require.Equal(t, "{tags: list of string null, colors: list of string null, small: list of int null, counts: list of int null, maybe: list of int null, "+
		"ratios: list of float null, amounts: list of decimal null, flags: list of bool null, days: list of date null, times: list of timestamp null, "+
		"keys: list of uuid null, others: list of uuid null}", typ.Schema().String())
	require.Equal(t, ";", typ.Schema().Field(0).Separator)
	seven := int64(7)
	amount, err := row.ParseDecimal("1.50")
	require.NoError(t, err)
	for _, want := range []lists{{}, {Tags: []string{}, Maybe: []*int64{}}, {
		Tags: []string{"a", "", "b;c"}, Colors: []color{"red"}, Small: []int8{-128, 127}, Counts: []uint64{0, math.MaxInt64}, Maybe: []*int64{nil, &seven, nil},
		Ratios: []float32{0.1, -2}, Amounts: []row.Decimal{amount}, Flags: []bool{true, false}, Days: []row.Date{row.NewDate(2026, 1, 31)},
		Times: []time.Time{time.Date(2026, 1, 31, 1, 2, 3, 4000, time.UTC)}, Keys: []row.UUID{{1}}, Others: []*libraryUUID{nil, {2}},
	}} {
		kept := &records{}
		w, err := typ.ToRecords(kept)
		require.NoError(t, err)
		items := item.NewSlice[lists](1)
		items.Append(want, item.Meta{})
		require.NoError(t, w.Write(t.Context(), items))
		r, err := typ.FromRecords(kept)
		require.NoError(t, err)
		again := item.NewSlice[lists](1)
		require.NoError(t, r.Fill(t.Context(), again, 1))
		require.Equal(t, want, again.Items[0])
	}
	for _, unfit := range []struct {
		field string
		list  any
		want  string
	}{
		{"small", []int64{1, 300}, "field small[1]: 300 does not fit a int8"},
		{"counts", []int64{-1}, "field counts[0]: -1 does not fit a uint64"},
		{"small", []*int64{&seven, nil}, "field small[1]: null does not fit a int8 (use a []*int8)"},
	} {
		values := make([]row.Value, typ.Schema().Len())
		values[typ.Schema().Index(unfit.field)], err = row.ValueOf(unfit.list)
		require.NoError(t, err)
		r, err := typ.FromRecords(&records{values: [][]row.Value{values}})
		require.NoError(t, err)
		again := item.NewSlice[lists](1)
		err = r.Fill(t.Context(), again, 1)
		require.ErrorContains(t, err, unfit.want)
		require.True(t, exception.IsSkippable(err))
	}
	w, err := typ.ToRecords(&records{})
	require.NoError(t, err)
	items := item.NewSlice[lists](1)
	items.Append(lists{Counts: []uint64{1, math.MaxUint64}}, item.Meta{})
	require.ErrorContains(t, w.Write(t.Context(), items), "field counts[1]: 18446744073709551615 does not fit an int")
	items = item.NewSlice[lists](1)
	items.Append(lists{Tags: []string{"\xff"}}, item.Meta{})
	require.ErrorContains(t, w.Write(t.Context(), items), "field tags[0]: the text is not UTF-8")
}

func TestSlicesOfSlicesAndOfThemselvesAreNoLists(t *testing.T) {
	t.Parallel()
	type self []self
	for _, typ := range []item.Type{item.TypeOf[struct{ A [][]int64 }](""), item.TypeOf[struct{ A self }](""), item.TypeOf[struct{ A [][]byte }](""), item.TypeOf[struct{ A []any }]("")} {
		require.Nil(t, typ.Schema())
	}
}

func TestGoSlicesAreFoundByTheirFrom(t *testing.T) {
	t.Parallel()
	type nested struct {
		Tags []string   `from:"in.tags"`
		Ints []*int     `from:"in.ints"`
		Days []row.Date `from:"in.days"`
	}
	one := 1
	read := again(t, item.TypeOf[nested](""), []byte(`{"in":{"tags":["a"],"ints":[1,null],"days":["2026-01-31"]}}`))
	require.Equal(t, nested{[]string{"a"}, []*int{&one, nil}, []row.Date{row.NewDate(2026, 1, 31)}}, read)
}
