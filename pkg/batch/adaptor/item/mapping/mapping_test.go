//test:plain

package mapping

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func strikes(t testing.TB) item.Type {
	t.Helper()
	s, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int, From: "Record ID"},
		row.Field{Name: "date", Kind: row.DateKind, From: "Flight Date", Format: "MM/dd/yyyy"},
		row.Field{Name: "species", Kind: row.String, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("strike", s)
}

func fields(pairs ...string) config {
	var c config
	for i := 0; i < len(pairs); i += 2 {
		c.Fields = append(c.Fields, registry.NamedExpression{Name: pairs[i], Expression: registry.Expression{Text: pairs[i+1]}})
	}
	return c
}

func only(pairs ...string) config {
	c := fields(pairs...)
	c.Only = true
	return c
}

func owl() []row.Value {
	return []row.Value{row.IntValue(7), row.DateValue(row.NewDate(1995, 5, 4)), {}}
}

func run(t *testing.T, cfg config, in item.Type, value item.Row) item.Row {
	t.Helper()
	out, err := Components()[0].Types(&cfg, in)
	require.NoError(t, err)
	built, err := Components()[0].New(context.Background(), &cfg, registry.BuildContext{In: in, Out: out})
	require.NoError(t, err)
	p := built.(item.Processor)
	cell := p.NewCell().(*item.Cell[item.Row])
	place, advance, err := p.Chain(cell)
	require.NoError(t, err)
	cell.Item, cell.Meta = value, item.Meta{Line: 3, Path: "a.csv"}
	require.NoError(t, advance(context.Background()))
	to := place.(*item.Cell[item.Row])
	require.Equal(t, cell.Meta, to.Meta)
	if !out.Schema().IsOpen() {
		require.Same(t, out.Schema(), to.Item.Schema())
	}
	for i, v := range to.Item.Values() {
		require.NoError(t, to.Item.Schema().Field(i).Check(v))
	}
	return to.Item
}

func TestFieldsAreReplacedInPlaceAndAddedBehind(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	cfg := fields("line", "meta.line", "species", "item.species ?? 'unknown'", "id", "string(item.id)", "next", "item.date + 1")
	got := run(t, cfg, in, row.New(in.Schema(), owl()))
	require.Equal(t, "{id: string, date: date, species: string, line: int, next: date}", got.Schema().String())
	require.Equal(t, []row.Value{
		row.StringValue("7"), row.DateValue(row.NewDate(1995, 5, 4)), row.StringValue("unknown"), row.IntValue(3), row.DateValue(row.NewDate(1995, 5, 5)),
	}, got.Values())
	require.Equal(t, "MM/dd/yyyy", got.Schema().Field(1).Format, "an untouched field keeps its text form")
	require.Equal(t, "Record ID", got.Schema().Field(0).From)
}

func TestOnlyKeepsTheNamedFieldsInTheirOrder(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	got := run(t, only("species", "item.species", "id", "item.id * 2", "ratio", "item.id / 2", "odd", "item.id % 2 == 1"), in, row.New(in.Schema(), owl()))
	require.Equal(t, "{species: string null, id: int, ratio: float, odd: bool}", got.Schema().String())
	require.Equal(t, []row.Value{{}, row.IntValue(14), row.FloatValue(3.5), row.BoolValue(true)}, got.Values())
}

func TestEveryExpressionSeesTheItemAsItCameIn(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	got := run(t, fields("id", "item.id + 1", "again", "item.id"), in, row.New(in.Schema(), owl()))
	require.Equal(t, int64(8), got.At(0).Int())
	require.Equal(t, int64(7), got.At(3).Int())
}

func TestNullabilityOfTheOutputFollowsTheExpression(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	cfg := only("a", "item.species", "b", "item.species ?? ''", "c", "item.id > 1 ? item.date : nil", "d", "item.species == nil ? 0 : len(item.species)")
	out, err := Components()[0].Types(&cfg, in)
	require.NoError(t, err)
	require.Equal(t, "{a: string null, b: string, c: date null, d: int}", out.Schema().String())
	require.Equal(t, "row {a: string null, b: string, c: date null, d: int}", out.Name())
}

type address struct{ City string }

type order struct {
	ID   int32
	Name *string
	Skip string `batch:"-"`
}

type deep struct {
	ID   int
	Bill address
}

func TestAGoTypeBecomesARow(t *testing.T) {
	t.Parallel()
	name := "Ann"
	for _, c := range []struct {
		cfg  config
		want string
	}{
		{fields("total", "item.id * 2", "name", "item.name ?? ''"), "{id: int, name: string, total: int}"},
		{fields("total", "item.id * 2"), "{id: int, name: string null, total: int}"},
		{only("total", "item.ID * 2"), "{total: int}"},
	} {
		p, err := newProcessor(c.cfg, item.TypeOf[order](""))
		require.NoError(t, err)
		cell := p.NewCell().(*item.Cell[order])
		out, advance, err := p.Chain(cell)
		require.NoError(t, err)
		cell.Item = order{ID: 4, Name: &name}
		require.NoError(t, advance(context.Background()))
		got := out.(*item.Cell[item.Row]).Item
		require.Equal(t, c.want, got.Schema().String())
		total, _ := got.Get("total")
		require.Equal(t, int64(8), total.Int())
		if v, ok := got.Get("name"); ok {
			require.Equal(t, "Ann", v.Str())
		}
	}
	p, err := newProcessor(only("city", "item.bill.city"), item.TypeOf[deep](""))
	require.NoError(t, err)
	_, _, err = p.Chain(p.NewCell())
	require.NoError(t, err)
	_, err = newProcessor(fields("city", "item.bill.city"), item.TypeOf[deep]("deep"))
	require.ErrorContains(t, err, "only: the fields of deep are not known: set only: true")
}

func TestAnOpenSchemaIsCompletedWhenTheSourceIsKnown(t *testing.T) {
	t.Parallel()
	open, err := row.Open()
	require.NoError(t, err)
	in := item.RowOf("", open)
	text := func(name string) row.Field { return row.Field{Name: name, Kind: row.String} }
	real, err := row.NewSchema(text("a"), text("b"), text("c"))
	require.NoError(t, err)
	item := row.New(real, []row.Value{row.StringValue("x"), row.StringValue("5"), row.StringValue("z")})

	got := run(t, fields("b", "int(item.b)", "d", "item.a + item.c"), in, item)
	require.Equal(t, "{a: string, b: int, c: string, d: string}", got.Schema().String())
	require.Equal(t, []row.Value{row.StringValue("x"), row.IntValue(5), row.StringValue("z"), row.StringValue("xz")}, got.Values())

	got = run(t, only("n", "int(item.b)"), in, item)
	require.Equal(t, "{n: int}", got.Schema().String())

	cfg := fields("b", "int(item.b)")
	out, err := Components()[0].Types(&cfg, in)
	require.NoError(t, err)
	require.Equal(t, "{b: int, ...}", out.Schema().String())
}

func TestAllMistakesAreReportedAtLoad(t *testing.T) {
	t.Parallel()
	cfg := fields("a", "item.idd", "b", "nil", "c", "item.id", "d", "lower(item.species)")
	_, err := Components()[0].Types(&cfg, strikes(t))
	require.EqualError(t, err, "fields.a: item has no field idd (did you mean id?)\n"+
		"fields.b: this is always null, so the field has no type\n"+
		"fields.d: item.species may be null: write item.species ?? '', or test it first (item.species != nil and ...)")
	var at *expression.Error
	require.ErrorAs(t, err, &at)
	require.Equal(t, 5, at.Offset)

	require.ErrorContains(t, new(config).Validate(), "map needs at least one field")
	twice := fields("a", "1", "a", "2")
	require.ErrorContains(t, twice.Validate(), "fields.a: the field is listed twice")
	_, err = newProcessor(twice, strikes(t))
	require.Error(t, err)
	empty := only("", "1")
	_, err = newProcessor(empty, strikes(t))
	require.ErrorContains(t, err, "has no name")
}

func TestAnItemOnWhichAFieldFailsIsInvalidAndTheNextOneGoesOn(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	p, err := newProcessor(only("id", "item.id", "share", "1 / item.id"), in)
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	out, advance, err := p.Chain(cell)
	require.NoError(t, err)
	var rows []item.Row
	for _, id := range []int64{1, 0, 2} {
		cell.Item = row.New(in.Schema(), []row.Value{row.IntValue(id), row.DateValue(0), {}})
		if err := advance(context.Background()); err != nil {
			require.ErrorContains(t, err, "map share: expression `1 / item.id`, character 3: division by zero")
			require.Equal(t, exception.ClassExpression, exception.ClassOf(err))
			require.True(t, exception.IsSkippable(err))
			continue
		}
		rows = append(rows, out.(*item.Cell[item.Row]).Item)
	}
	require.Len(t, rows, 2)
	require.Equal(t, []row.Value{row.IntValue(1), row.FloatValue(1)}, rows[0].Values())
	require.Equal(t, []row.Value{row.IntValue(2), row.FloatValue(0.5)}, rows[1].Values())
}

func TestRowsStayWhatTheyWereWhenMoreAreMade(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	p, err := newProcessor(fields("twice", "item.id * 2"), in)
	require.NoError(t, err)
	const goroutines, each = 4, 5000
	var wg sync.WaitGroup
	errs := make(chan error, goroutines)
	for range goroutines {
		wg.Go(func() {
			cell := p.NewCell().(*item.Cell[item.Row])
			out, advance, err := p.Chain(cell)
			rows := p.NewItems(each)
			buffer := owl() // reused, as a reader does
			for i := int64(0); i < each && err == nil; i++ {
				buffer[0] = row.IntValue(i)
				cell.Item = row.New(in.Schema(), buffer)
				if err = advance(context.Background()); err == nil {
					rows.Store(out)
				}
			}
			for i := 0; i < each && err == nil; i++ {
				r := rows.At(i).(item.Row)
				if r.At(0).Int() != int64(i) || r.At(3).Int() != int64(2*i) {
					err = fmt.Errorf("row %d is %v", i, r.Values())
				}
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

func TestManyGoroutinesShareOneShapeOfAnOpenSchema(t *testing.T) {
	t.Parallel()
	open, err := row.Open()
	require.NoError(t, err)
	p, err := newProcessor(fields("n", "int(item.a)"), item.RowOf("", open))
	require.NoError(t, err)
	real, err := row.NewSchema(row.Field{Name: "a", Kind: row.String})
	require.NoError(t, err)
	var wg sync.WaitGroup
	schemas := make(chan *row.Schema, 8)
	for range 8 {
		wg.Go(func() {
			cell := &item.Cell[item.Row]{Item: row.New(real, []row.Value{row.StringValue("1")})}
			out, advance, err := p.Chain(cell)
			if err == nil && advance(context.Background()) == nil {
				schemas <- out.(*item.Cell[item.Row]).Item.Schema()
			}
		})
	}
	wg.Wait()
	close(schemas)
	first, count := <-schemas, 1
	for s := range schemas {
		require.Same(t, first, s)
		count++
	}
	require.Equal(t, 8, count)
}

func TestMappingARowAllocatesPerSlabOnly(t *testing.T) {
	in := strikes(t)
	p, err := newProcessor(fields("line", "meta.line", "species", "item.species ?? 'unknown'", "year", "year(item.date)"), in)
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	_, advance, err := p.Chain(cell)
	require.NoError(t, err)
	cell.Item = row.New(in.Schema(), owl())
	perThousand := testing.AllocsPerRun(20, func() {
		for range 1000 {
			_ = advance(context.Background())
		}
	})
	require.LessOrEqual(t, perThousand, 3.0)
}

func BenchmarkMapRow(b *testing.B) {
	in := strikes(b)
	p, err := newProcessor(fields("line", "meta.line", "species", "item.species ?? 'unknown'", "year", "year(item.date)"), in)
	require.NoError(b, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	_, advance, err := p.Chain(cell)
	require.NoError(b, err)
	cell.Item = row.New(in.Schema(), owl())
	b.ReportAllocs()
	for b.Loop() {
		_ = advance(context.Background())
	}
}
