package item_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type order struct {
	ID     int64
	Name   string
	Day    row.Date
	At     time.Time
	Amount float64
	Price  row.Decimal
	Paid   bool
}

type orders struct{ values []row.Value }

func (o *orders) Schema() *row.Schema { return item.TypeOf[order]("order").Schema() }

func (o *orders) ReadRecord(_ context.Context, dst []row.Value) error {
	copy(dst, o.values)
	return nil
}

type double struct{}

func (double) Process(_ context.Context, o order) (order, error) {
	if o.ID < 0 {
		return o, item.ErrFilter
	}
	o.ID *= 2
	return o, nil
}

func newOrders(t *testing.T) *orders {
	price, err := row.ParseDecimal("12.50")
	require.NoError(t, err)
	return &orders{values: []row.Value{
		row.IntValue(7), row.StringValue("x"), row.DateValue(row.NewDate(2024, 2, 29)), row.TimestampValue(time.UnixMicro(1)),
		row.FloatValue(1.5), row.DecimalValue(price), row.BoolValue(true),
	}}
}

func TestStructsAreReadAndProcessedWithoutAnAllocation(t *testing.T) { // not parallel: it counts
	const size = 100
	ctx := t.Context()
	r, err := item.TypeOf[order]("order").FromRecords(newOrders(t))
	require.NoError(t, err)
	p := item.EraseProcessor[order, order](double{})
	whole := p.(itemextra.BatchProcessor)
	in, out := r.NewItems(size), p.NewItems(size)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		in.Reset()
		out.Reset()
		if err := r.Fill(ctx, in, size); err != nil {
			panic(err)
		}
		next, err := whole.ProcessAll(ctx, in, 0, size, out)
		if err != nil || next != size || out.Len() != size {
			panic(err)
		}
	}))
	got := out.At(99).(order)
	require.Equal(t, "12.50", got.Price.String())
	require.Equal(t, order{ID: 14, Name: "x", Day: row.NewDate(2024, 2, 29), At: time.UnixMicro(1).UTC(), Amount: 1.5, Price: got.Price, Paid: true}, got)
}

func TestAnItemWithoutAnOutputEndsTheCall(t *testing.T) {
	t.Parallel()
	p := item.EraseProcessor[order, order](double{})
	in := &item.Slice[order]{Items: []order{{ID: 1}, {ID: 2}, {ID: -3}, {ID: 4}}, Metas: []item.Meta{{Line: 1}, {Line: 2}, {Line: 3}, {Line: 4}}}
	out := p.NewItems(0)
	next, err := p.(itemextra.BatchProcessor).ProcessAll(t.Context(), in, 1, 4, out)
	require.ErrorIs(t, err, item.ErrFilter)
	require.Equal(t, 2, next)
	require.Equal(t, 1, out.Len())
	require.Equal(t, int64(2), out.Meta(0).Line)
}
