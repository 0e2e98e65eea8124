//test:plain

package filter

import (
	"context"
	"reflect"
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
		row.Field{Name: "id", Kind: row.Int},
		row.Field{Name: "date", Kind: row.DateKind},
		row.Field{Name: "species", Kind: row.String, Nullable: true},
	)
	require.NoError(t, err)
	return item.RowOf("strike", s)
}

func keepIf(text string) config {
	return config{When: registry.Expression{Text: text, Env: registry.ExpressionEnv{
		Types:  map[string]map[string]reflect.Type{"params": {"year": reflect.TypeFor[int64]()}},
		Values: map[string]map[string]any{"params": {"year": int64(1995)}},
	}}}
}

func values(id int64, year int, species row.Value) []row.Value {
	return []row.Value{row.IntValue(id), row.DateValue(row.NewDate(year, 1, 1)), species}
}

func TestRowsForWhichTheExpressionIsFalseAreFiltered(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	p, err := newProcessor(keepIf("year(item.date) >= params.year and (item.species == nil or item.species != 'gull')"), in)
	require.NoError(t, err)
	source := item.NewSlice[item.Row](4)
	for i, v := range [][]row.Value{
		values(1, 1994, row.Value{}), values(2, 1995, row.Value{}), values(3, 1996, row.StringValue("gull")), values(4, 1996, row.StringValue("owl")),
	} {
		source.Append(row.New(in.Schema(), v), item.Meta{Line: int64(i + 2)})
	}
	cell := p.NewCell()
	out, advance, err := p.Chain(cell)
	require.NoError(t, err)
	kept := p.NewItems(4)
	for i := range source.Len() {
		source.Load(i, cell)
		if err := advance(context.Background()); err != nil {
			require.ErrorIs(t, err, item.ErrFilter)
			continue
		}
		kept.Store(out)
	}
	require.Equal(t, 2, kept.Len())
	require.Equal(t, int64(2), kept.At(0).(item.Row).At(0).Int())
	require.Equal(t, item.Meta{Line: 5}, kept.Meta(1))
}

type strike struct {
	ID      int
	Species string
	Cost    *float64
}

func TestGoTypesAreFilteredInTheirCell(t *testing.T) {
	t.Parallel()
	p, err := newProcessor(keepIf("item.id > 1 and (item.Cost ?? 0) < 10"), item.TypeOf[strike](""))
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[strike])
	out, advance, err := p.Chain(cell)
	require.NoError(t, err)
	require.Same(t, cell, out)
	cost := 11.0
	for item, want := range map[strike]error{{ID: 1}: item.ErrFilter, {ID: 2}: nil, {ID: 2, Cost: &cost}: item.ErrFilter} {
		cell.Item = item
		require.Equal(t, want, advance(context.Background()))
	}
	items := p.NewItems(1)
	items.Store(cell)
	require.IsType(t, strike{}, items.At(0))
}

func TestAFilterThatIsNoSafeBoolIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	describe := Components()[0]
	for text, want := range map[string]string{
		"item.id":                  "when: a bool is needed here, not an int",
		"item.species == 'a'":      "when: item.species may be null",
		"nil":                      "when: nil cannot be used here",
		"item.id > 0 ? nil : true": "when: this may be null",
		"item.idd > 1":             "when: item has no field idd (did you mean id?)",
		"":                         "when: the expression is empty",
	} {
		cfg := keepIf(text)
		_, err := describe.Types(&cfg, strikes(t))
		var key *registry.ConfigError
		require.ErrorAs(t, err, &key)
		require.Equal(t, "when", key.Key)
		require.ErrorContains(t, err, want)
		var at *expression.Error
		require.ErrorAs(t, err, &at)
		_, err = newProcessor(cfg, strikes(t))
		require.ErrorContains(t, err, want)
	}
	cfg := keepIf("item.id > 0")
	in := strikes(t)
	out, err := describe.Types(&cfg, in)
	require.NoError(t, err)
	require.Equal(t, in, out)
}

func TestAnItemOnWhichTheFilterFailsIsInvalid(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	p, err := newProcessor(keepIf("1 / item.id > 0"), in)
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	_, advance, err := p.Chain(cell)
	require.NoError(t, err)
	cell.Item = row.New(in.Schema(), values(0, 1990, row.Value{}))
	err = advance(context.Background())
	require.ErrorContains(t, err, "filter: expression `1 / item.id > 0`, character 3: division by zero")
	require.Equal(t, exception.ClassExpression, exception.ClassOf(err))
	require.True(t, exception.IsSkippable(err))
}

func TestTheComponentIsMade(t *testing.T) {
	t.Parallel()
	cfg := keepIf("item.id > 0")
	p, err := Components()[0].New(context.Background(), &cfg, registry.BuildContext{In: strikes(t), Out: strikes(t)})
	require.NoError(t, err)
	require.Implements(t, (*item.Processor)(nil), p)
}

func TestOneFilterServesManyGoroutines(t *testing.T) {
	t.Parallel()
	in := strikes(t)
	p, err := newProcessor(keepIf("item.id % 2 == 0"), in)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wrong := make(chan int64, 8000)
	for range 8 {
		wg.Go(func() {
			cell := p.NewCell().(*item.Cell[item.Row])
			_, advance, err := p.Chain(cell)
			for i := int64(0); i < 1000; i++ {
				cell.Item = row.New(in.Schema(), values(i, 1990, row.Value{}))
				if err != nil || (advance(context.Background()) == nil) != (i%2 == 0) {
					wrong <- i
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, wrong)
}

func TestFilteringARowAllocatesNothing(t *testing.T) {
	in := strikes(t)
	p, err := newProcessor(keepIf("year(item.date) >= params.year and item.species != nil and item.species startsWith 'o'"), in)
	require.NoError(t, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	_, advance, err := p.Chain(cell)
	require.NoError(t, err)
	cell.Item = row.New(in.Schema(), values(1, 1996, row.StringValue("owl")))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := advance(context.Background()); err != nil {
			t.Error(err)
		}
	}))
}

func BenchmarkFilterRow(b *testing.B) {
	in := strikes(b)
	p, err := newProcessor(keepIf("year(item.date) >= params.year and item.id > 0"), in)
	require.NoError(b, err)
	cell := p.NewCell().(*item.Cell[item.Row])
	_, advance, err := p.Chain(cell)
	require.NoError(b, err)
	cell.Item = row.New(in.Schema(), values(1, 1996, row.StringValue("owl")))
	b.ReportAllocs()
	for b.Loop() {
		_ = advance(context.Background())
	}
}
