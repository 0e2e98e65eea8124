package expression_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func schema(t testing.TB, fields ...row.Field) *row.Schema {
	t.Helper()
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return s
}

func strikes(t testing.TB) *row.Schema {
	return schema(t,
		row.Field{Name: "id", Kind: row.Int},
		row.Field{Name: "species", Kind: row.String, Nullable: true},
		row.Field{Name: "cost", Kind: row.Float},
		row.Field{Name: "date", Kind: row.DateKind},
		row.Field{Name: "at", Kind: row.Timestamp, Nullable: true},
		row.Field{Name: "total cost", Kind: row.Int, Nullable: true},
	)
}

func strike(s *row.Schema) *item.Cell[item.Row] {
	return &item.Cell[item.Row]{
		Item: row.New(s, []row.Value{
			row.IntValue(7), {}, row.FloatValue(12.5), row.DateValue(row.NewDate(1995, 5, 4)),
			row.TimestampValue(time.Date(1995, 5, 4, 10, 0, 0, 0, time.UTC)), row.IntValue(99),
		}),
		Meta: item.Meta{Path: "strikes.csv", Line: 8},
	}
}

func params() registry.ExpressionEnv {
	return registry.ExpressionEnv{
		Types: map[string]map[string]reflect.Type{
			"params":           {"year": reflect.TypeFor[int64](), "note": reflect.TypeFor[*string]()},
			"job":              {"name": reflect.TypeFor[string]()},
			"steps.totals.out": {"n": reflect.TypeFor[int64]()},
		},
		Values: map[string]map[string]any{
			"params":           {"year": int64(1990)},
			"job":              {"name": "nightly"},
			"steps.totals.out": {"n": int64(3)},
		},
	}
}

func evalItem(t *testing.T, text string, in item.Type, cell any) (row.Value, error) {
	t.Helper()
	p, err := expression.CompileItem(registry.Expression{Text: text, Env: params()}, in)
	require.NoError(t, err, text)
	f, err := expression.NewFrame(cell)
	require.NoError(t, err)
	v, err := p.Eval(f)
	if err == nil && !v.IsNull() {
		require.Equal(t, p.Kind(), v.Kind(), text)
	}
	if v.IsNull() && err == nil {
		require.True(t, p.Nullable(), text)
	}
	return v, err
}

func TestAnExpressionReadsRowMetaAndParameters(t *testing.T) {
	t.Parallel()
	s := strikes(t)
	for text, want := range map[string]row.Value{
		"item.id + 1":                           row.IntValue(8),
		"item.species ?? 'unknown'":             row.StringValue("unknown"),
		"item.species":                          {},
		"item.cost * item.id":                   row.FloatValue(87.5),
		"year(item.date) >= params.year":        row.BoolValue(true),
		"item.date + 1":                         row.DateValue(row.NewDate(1995, 5, 5)),
		"item.at == nil ? nil : date(item.at)":  row.DateValue(row.NewDate(1995, 5, 4)),
		"item['total cost'] ?? 0":               row.IntValue(99),
		"meta.line":                             row.IntValue(8),
		"meta.path + '!'":                       row.StringValue("strikes.csv!"),
		"params.note ?? job.name":               row.StringValue("nightly"),
		"steps.totals.out.n":                    row.IntValue(3),
		"let c = item.cost * 2; c > 20 ? c : 0": row.FloatValue(25),
	} {
		got, err := evalItem(t, text, item.RowOf("strike", s), strike(s))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestItemMistakesAreFoundAtLoad(t *testing.T) {
	t.Parallel()
	in := item.RowOf("strike", strikes(t))
	for text, want := range map[string]struct {
		at  int
		msg string
	}{
		"item.spezies == 'a'":                  {5, "item has no field spezies (did you mean species?)"},
		"1 + len(item.species)":                {8, "item.species may be null: write item.species ?? ''"},
		"meta.rows":                            {5, "meta has no field rows"},
		"item":                                 {0, "item is not a value: name one of its fields (there is id, species"},
		"item.date - date('1990-01-01') > '3'": {31, "cannot compare an int and a string"},
		"item.at ?? item.date":                 {11, "the alternatives are a timestamp and a date"},
		"duration('1s')":                       {0, "a duration cannot be a value of an item"},
	} {
		_, err := expression.CompileItem(registry.Expression{Text: text}, in)
		var at *expression.Error
		require.ErrorAs(t, err, &at, text)
		require.Contains(t, at.Msg, want.msg)
		require.Equal(t, want.at, at.Offset, text)
	}
}

func TestAnItemOnWhichAnExpressionFailsIsInvalid(t *testing.T) {
	t.Parallel()
	s := strikes(t)
	_, err := evalItem(t, "item.id / (item.id - 7) > 1", item.RowOf("", s), strike(s))
	require.True(t, exception.IsSkippable(err))
	require.False(t, exception.IsRetryable(err))
	require.Equal(t, exception.ClassExpression, exception.ClassOf(err))
	require.ErrorContains(t, err, "expression `item.id / (item.id - 7) > 1`, character 9: division by zero")
}

func TestARowOfAnotherShapeIsInvalidNotAPanic(t *testing.T) {
	t.Parallel()
	in := item.RowOf("", strikes(t))
	other := schema(t, row.Field{Name: "cost", Kind: row.String})
	for text, want := range map[string]string{
		"item.id":   "the item has no field id (there is cost)",
		"item.cost": "item.cost is a string, but its type is float",
	} {
		_, err := evalItem(t, text, in, &item.Cell[item.Row]{Item: row.New(other, []row.Value{row.StringValue("a")})})
		require.ErrorContains(t, err, want)
	}
	_, err := evalItem(t, "item.id", in, &item.Cell[item.Row]{})
	require.ErrorContains(t, err, "no field id")
}

func TestParametersWithoutValuesAreForCheckingOnly(t *testing.T) {
	t.Parallel()
	env := params()
	env.Values = nil
	s := strikes(t)
	p, err := expression.CompileItem(registry.Expression{Text: "item.id > params.year", Env: env}, item.RowOf("", s))
	require.NoError(t, err)
	f, err := expression.NewFrame(strike(s))
	require.NoError(t, err)
	_, err = p.Eval(f)
	require.ErrorContains(t, err, "params.year has no value before the launch")

	env = params()
	delete(env.Values["params"], "year")
	_, err = expression.CompileItem(registry.Expression{Text: "item.id > params.year", Env: env}, item.RowOf("", s))
	require.ErrorContains(t, err, "params.year has no value")
	env.Values["params"]["year"] = "1990"
	_, err = expression.CompileItem(registry.Expression{Text: "item.id > 1", Env: env}, item.RowOf("", s))
	require.ErrorContains(t, err, "params.year: it is a string, not an int")
}

func TestAnOpenSchemaIsReadByNameWhenItIsKnown(t *testing.T) {
	t.Parallel()
	open, err := row.Open()
	require.NoError(t, err)
	in := item.RowOf("", open)
	p, err := expression.CompileItem(registry.Expression{Text: "item.b + '!'"}, in)
	require.NoError(t, err)
	require.Equal(t, row.String, p.Kind())
	require.False(t, p.Nullable())

	text := func(name string) row.Field { return row.Field{Name: name, Kind: row.String} }
	cell := &item.Cell[item.Row]{}
	f, err := expression.NewFrame(cell)
	require.NoError(t, err)
	for i, s := range []*row.Schema{
		schema(t, text("a"), text("b")), schema(t, text("b"), text("a")), schema(t, text("a"), row.Field{Name: "b", Kind: row.Int}),
	} {
		values := []row.Value{row.StringValue("x"), row.StringValue("x")}
		values[s.Index("b")] = row.StringValue("B")
		want := "B!"
		if i == 2 {
			values[s.Index("b")], want = row.IntValue(5), "5!"
		}
		cell.Item = row.New(s, values)
		v, err := p.Eval(f)
		require.NoError(t, err)
		require.Equal(t, want, v.Str())
	}
	cell.Item = row.New(schema(t, text("a"), text("c")), make([]row.Value, 2))
	_, err = p.Eval(f)
	require.ErrorContains(t, err, "the item has no column b (there is a, c)")
	cell.Item = row.New(schema(t, row.Field{Name: "b", Kind: row.String, Nullable: true}), make([]row.Value, 1))
	_, err = p.Eval(f)
	require.ErrorContains(t, err, "item.b is null")

	_, err = expression.CompileItem(registry.Expression{Text: "item.b > 1"}, in)
	require.ErrorContains(t, err, "write int(x)")
}

type address struct{ City, ZIPCode string }

type order struct {
	ID       int32
	Customer *string `batch:"client"`
	Paid     time.Time
	Due      core.Date
	Amount   float32
	Open     bool
	Ship     *address
	Bill     address
	Tags     []string
	Secret   string `batch:"-"`
	Big      uint64
	Wait     time.Duration
	hidden   int
}

func TestGoStructsReadLikeRows(t *testing.T) {
	t.Parallel()
	name := "Ann"
	cell := &item.Cell[order]{
		Item: order{
			ID: 5, Customer: &name, Paid: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), Due: row.NewDate(2026, 1, 1),
			Amount: 1.5, Open: true, Bill: address{"Rom", "001"}, Wait: time.Minute, hidden: 1,
		},
		Meta: item.Meta{Line: 3},
	}
	pointer := &item.Cell[*order]{Item: &cell.Item}
	for text, want := range map[string]row.Value{
		"item.id + 1":                         row.IntValue(6),
		"item.ID + 1":                         row.IntValue(6),
		"item.client ?? 'none'":               row.StringValue("Ann"),
		"item.Customer ?? 'none'":             row.StringValue("Ann"),
		"date(item.paid) > item.due":          row.BoolValue(true),
		"item.amount * 2":                     row.FloatValue(3),
		"not item.open":                       row.BoolValue(false),
		"item.bill.city + item.Bill.zip_code": row.StringValue("Rom001"),
		"item.ship.city ?? 'home'":            row.StringValue("home"),
		"item.ship?.city":                     {},
		"item.wait > duration('30s')":         row.BoolValue(true),
		"meta.line":                           row.IntValue(3),
	} {
		cell.Meta.Line, pointer.Meta.Line = 3, 3
		got, err := evalItem(t, text, item.TypeOf[order](""), cell)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		got, err = evalItem(t, text, item.TypeOf[*order](""), pointer)
		require.NoError(t, err, text)
		require.Equal(t, want, got, "%s through a pointer", text)
	}
	for text, want := range map[string]string{
		"item.secret":           "no field secret",
		"item.hidden":           "no field hidden",
		"lower(item.tags[0])":   "item.tags may be null: write item.tags ?? ['']",
		"item.bill":             "item.bill is not a value",
		"lower(item.ship.city)": "item.ship.city may be null",
		"lower(item.client)":    "item.client may be null",
		"item.custmer":          "item has no field custmer",
	} {
		_, err := expression.CompileItem(registry.Expression{Text: text}, item.TypeOf[order](""))
		require.ErrorContains(t, err, want, text)
	}
	_, err := expression.CompileItem(registry.Expression{Text: "1 == 1"}, item.TypeOf[int]("number"))
	require.ErrorContains(t, err, "an item of type number has no fields")

	cell.Item.Big = 1 << 63
	_, err = evalItem(t, "item.big > 1", item.TypeOf[order](""), cell)
	require.ErrorContains(t, err, "item.big does not fit an int")
	pointer.Item = nil
	_, err = evalItem(t, "item.id > 1", item.TypeOf[*order](""), pointer)
	require.ErrorContains(t, err, "the item is nil")
}

func TestEvaluatingAllocatesNothing(t *testing.T) {
	s := strikes(t)
	cell := strike(s)
	f, err := expression.NewFrame(cell)
	require.NoError(t, err)
	for _, text := range []string{
		"year(item.date) >= params.year and item.cost >= 0 and (item.species ?? 'x') != 'unknown'",
		"item.cost * item.id + 2.5", "item.date > date('1990-01-01')", "(item.species ?? '') in ['a', 'b']",
		"let c = item.cost; c > 1 and c < 100", "(item.species ?? 'bird') matches '^b'",
	} {
		p, err := expression.CompileItem(registry.Expression{Text: text, Env: params()}, item.RowOf("", s))
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := p.Eval(f); err != nil {
				t.Error(err)
			}
		}), text)
	}
	orders := &item.Cell[order]{Item: order{ID: 1, Paid: time.Now()}}
	of, err := expression.NewFrame(orders)
	require.NoError(t, err)
	p, err := expression.CompileItem(registry.Expression{Text: "item.id > 0 and year(item.paid) > 1990 and not item.open"}, item.TypeOf[order](""))
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = p.Eval(of) }))
}

func TestOneProgramServesManyGoroutines(t *testing.T) {
	t.Parallel()
	s := strikes(t)
	open, err := row.Open()
	require.NoError(t, err)
	for _, in := range []item.Type{item.RowOf("", s), item.RowOf("", open)} {
		text := "let a = int(string(item.id)); a * 2 + meta.line"
		if in.Schema().IsOpen() {
			text = "let a = int(item.id); a * 2 + meta.line"
		}
		p, err := expression.CompileItem(registry.Expression{Text: text}, in)
		require.NoError(t, err)
		var wg sync.WaitGroup
		errs := make(chan error, 8)
		for g := range 8 {
			wg.Go(func() {
				cell := strike(s)
				f, err := expression.NewFrame(cell)
				for i := int64(0); i < 500 && err == nil; i++ {
					values := append([]row.Value(nil), cell.Item.Values()...)
					values[0] = row.IntValue(i)
					cell.Item, cell.Meta.Line = row.New(s, values), int64(g)
					var v row.Value
					if v, err = p.Eval(f); err == nil && v.Int() != i*2+int64(g) {
						err = fmt.Errorf("%d of goroutine %d gave %s", i, g, v)
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
}

func TestAGuardPassesTheCellOn(t *testing.T) {
	t.Parallel()
	g := &expression.Guard{In: item.TypeOf[order](""), Check: func(*expression.Frame) error { return item.ErrFilter }}
	cell := g.NewCell()
	out, advance, err := g.Chain(cell)
	require.NoError(t, err)
	require.Same(t, cell, out)
	require.ErrorIs(t, advance(context.Background()), item.ErrFilter)
	require.IsType(t, &item.Slice[order]{}, g.NewItems(1))
	_, _, err = g.Chain(5)
	require.ErrorContains(t, err, "not a cell")
}

func TestAnItemProgramTellsWhatItIs(t *testing.T) {
	t.Parallel()
	s := strikes(t)
	p, err := expression.CompileItem(registry.Expression{Text: " item.cost + params.year > item.id", Env: params()}, item.RowOf("", s))
	require.NoError(t, err)
	require.Equal(t, " item.cost + params.year > item.id", p.Text())
	require.Equal(t, []string{"item.cost", "item.id", "params.year"}, p.Vars())
	require.Equal(t, 1, p.Offset())
	require.NoError(t, p.Require(row.Bool))
	require.EqualError(t, p.Require(row.Int), "an int is needed here, not a bool")
	f, err := expression.NewFrame(strike(s))
	require.NoError(t, err)
	require.Equal(t, "item.cost = 12.5, item.id = 7, params.year = 1990", p.Used(f))
	p, err = expression.CompileItem(registry.Expression{Text: "item.species != nil and meta.path == item.species"}, item.RowOf("", s))
	require.NoError(t, err)
	require.Equal(t, `item.species = null, meta.path = "strikes.csv"`, p.Used(f))
}

func TestNamesOfTheLaunchMayNotHideTheItem(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"item", "meta", "item.id"} {
		env := registry.ExpressionEnv{Types: map[string]map[string]reflect.Type{path: {"x": reflect.TypeFor[int64]()}}}
		_, err := expression.CompileItem(registry.Expression{Text: "1 == 1", Env: env}, item.RowOf("", strikes(t)))
		require.ErrorContains(t, err, "is already used", path)
	}
}

func TestAFailureWithValuesOfTheLaunchStaysInItsBranch(t *testing.T) {
	t.Parallel()
	s := strikes(t)
	v, err := evalItem(t, "params.year == 1990 ? 0.0 : 1 / (params.year - 1990)", item.RowOf("", s), strike(s))
	require.NoError(t, err)
	require.Equal(t, row.FloatValue(0), v)
	_, err = evalItem(t, "item.id > 0 and 1 / (params.year - 1990) > 0", item.RowOf("", s), strike(s))
	require.ErrorContains(t, err, "division by zero")
}
