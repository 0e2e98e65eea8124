//test:plain

package group

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func sales(t testing.TB) item.Type {
	t.Helper()
	s, err := row.NewSchema(
		row.Field{Name: "shop", Kind: row.String}, row.Field{Name: "amount", Kind: row.Int},
		row.Field{Name: "note", Kind: row.String, Nullable: true, Nulls: []string{""}},
	)
	require.NoError(t, err)
	return item.RowOf("sale", s)
}

func reading(t testing.TB, path string) registry.Nested {
	t.Helper()
	return testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{"path": path, "item": sales(t), "header": "exact", "max_line": 1000})
}

func fields(pairs ...string) registry.Expressions {
	var list registry.Expressions
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, registry.NamedExpression{Name: pairs[i], Expression: registry.Expression{Text: pairs[i+1]}})
	}
	return list
}

func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func grouped(t testing.TB, cfg config) item.Reader {
	t.Helper()
	out, err := Components()[0].Types(&cfg, nil)
	require.NoError(t, err)
	r, err := newReader(context.Background(), cfg, registry.BuildContext{Out: out})
	require.NoError(t, err)
	return r
}

func texts(rows []item.Row) []string {
	var list []string
	for _, r := range rows {
		var values []string
		for _, v := range r.Values() {
			values = append(values, v.String())
		}
		list = append(list, strings.Join(values, ","))
	}
	return list
}

const threeShops = "shop,amount,note\na,1,x\na,2,\na,3,y\nb,10,\nc,5,p\nc,-5,q\n"

func TestConsecutiveRowsWithOneKeyBecomeOneRow(t *testing.T) {
	t.Parallel()
	cfg := config{
		Reader: reading(t, file(t, threeShops)), Key: []string{"shop"},
		Fields: fields("n", "count()", "notes", "count(item.note)", "total", "sum(item.amount)", "half", "sum(item.amount / 2)", "least", "min(item.amount)",
			"most", "max(item.note)", "first", "first(item.note)", "last", "last(item.note)", "joined", "join(item.note, ' + ')", "all", "list(item.note)", "line", "first(meta.line)"),
	}
	require.Equal(t, []string{
		`a,3,2,6,3,1,y,x,y,x + y,["x",null,"y"],2`,
		`b,1,0,10,5,10,null,null,null,,[null],5`,
		`c,2,2,0,0,-5,q,p,q,p + q,["p","q"],6`,
	}, texts(testexample.Read[item.Row](grouped(t, cfg))))
}

func TestAGroupBeginsWhereARowLooksLikeItsFirstOne(t *testing.T) {
	t.Parallel()
	cfg := config{
		Reader: reading(t, file(t, "shop,amount,note\nH,1,\nP,2,x\nP,3,y\nH,4,\nH,5,\nP,6,z\n")),
		Starts: registry.Expression{Text: "item.shop == 'H'"},
		Fields: fields("order", "first(item.amount)", "lines", "join(item.note, ',')", "sum", "sum(item.shop == 'P' ? item.amount : 0)"),
	}
	require.Equal(t, []string{"1,x,y,5", "4,,0", "5,z,6"}, texts(testexample.Read[item.Row](grouped(t, cfg))))
}

func TestTheReaderKeepsTheContractOfReaders(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("shop,amount,note\nx,bad,\nx,1,\n")
	for i, n := range []int{1, 3, 90, 1, 1, 130, 2} {
		for j := range n {
			text.WriteString(strings.Repeat(string(rune('a'+i)), 2))
			switch {
			case j%7 == 6:
				text.WriteString(",none,\n")
			case j%5 == 4:
				text.WriteString(",-1,\n")
			default:
				text.WriteString(",2,n\n")
			}
		}
	}
	text.WriteString("z,1,\nz,bad,\n")
	for _, whole := range []string{"shop,amount,note\n", "shop,amount,note\na,1,\n", text.String()} {
		path := file(t, whole)
		itemtest.Reader(t, itemtest.ReaderConfig{
			Source: path,
			New: func(t testing.TB) item.Reader {
				return grouped(t, config{
					Reader: reading(t, path), Key: []string{"shop"}, Fields: fields("n", "count()", "total", "sum(item.amount)"),
					Processor: []registry.Nested{testcomponent.Nested(filter.Components(), registry.KindProcessor, testcomponent.Settings{"when": registry.Expression{Text: "item.amount >= 0"}})},
				})
			},
			Change: func(t testing.TB) { require.NoError(t, os.WriteFile(path, []byte(whole+"zz,1,\n"), 0o600)) },
		})
	}
}

func TestGroupsOfAQueryRestartBehindTheLastWholeGroup(t *testing.T) {
	t.Parallel()
	provider, db, done := testexample.SQLite("create table sale (id int primary key, shop text, amount int, note text)",
		"insert into sale values (1, 'a', 1, null), (2, 'a', 2, null), (3, 'b', 3, null), (4, 'b', 4, null), (5, 'c', 5, null)")
	defer done()
	fresh := func(t testing.TB) item.Reader {
		cfg := config{Key: []string{"shop"}, Fields: fields("total", "sum(item.amount)"), Reader: testcomponent.Nested(query.Components(), registry.KindReader, testcomponent.Settings{
			"sql": registry.SQL{Parts: []string{"select id, shop, amount, note from sale"}}, "key": []string{"shop", "amount"}, "item": sales(t), "fetch": 2,
		})}
		r, err := newReader(t.Context(), cfg, registry.BuildContext{Databases: provider})
		require.NoError(t, err)
		return r
	}
	itemtest.Reader(t, itemtest.ReaderConfig{New: fresh})
	r := fresh(t)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	items := r.NewItems(1)
	require.NoError(t, r.Fill(t.Context(), items, 1))
	at, err := r.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	for _, change := range []string{"delete from sale where shop = 'a'", "insert into sale values (6, 'b', 9, null)"} {
		_, err = db.Conn().ExecContext(t.Context(), change)
		require.NoError(t, err)
	}
	again := fresh(t)
	require.NoError(t, again.Component().(item.Opener).Open(t.Context(), at))
	items = again.NewItems(9)
	require.Error(t, again.Fill(t.Context(), items, 9))
	require.Equal(t, []string{"b,16", "c,5"}, texts([]item.Row{items.At(0).(item.Row), items.At(1).(item.Row)}))
	require.NoError(t, again.Component().(item.Closer).Close(t.Context()))
}

func TestAGroupThatCannotBeComputedIsAnInvalidItemAndTheNextOneGoesOn(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]config{
		"total: the sum is larger than an int":                          {Fields: fields("total", "sum(item.amount * 4611686018427387904)")},
		"all: join and list have collected more than max_group, 4 byte": {Fields: fields("all", "list(item.amount)"), MaxGroup: 4},
	} {
		cfg.Reader, cfg.Key = reading(t, file(t, "shop,amount,note\na,1,\na,1,\na,0,\nb,1,\n")), []string{"shop"}
		r := grouped(t, cfg)
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
		items := r.NewItems(2)
		err := r.Fill(t.Context(), items, 2)
		require.True(t, item.IsConsumed(err))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "in.csv:2: ")
		require.NoError(t, r.Fill(t.Context(), items, 1))
		require.Equal(t, "b", items.At(0).(item.Row).At(0).Str())
		require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	}
}

func TestRowsThatAreNotSortedAreRefusedWhereTheyMustBe(t *testing.T) {
	t.Parallel()
	r := grouped(t, config{Reader: reading(t, file(t, "shop,amount,note\nb,1,\na,1,\n")), Key: []string{"shop"}, Sorted: true})
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	for range 2 {
		err := r.Fill(t.Context(), r.NewItems(1), 1)
		require.ErrorContains(t, err, `in.csv:3: "a" comes after "b": the rows are not sorted by the key`)
	}
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
}

func TestMistakesInAGroupAreFoundAtLoad(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]config{
		"key: which rows belong together is not set":                             {},
		"starts: key is set, too":                                                {Key: []string{"shop"}, Starts: registry.Expression{Text: "true"}},
		"starts: a group's row needs a field":                                    {Starts: registry.Expression{Text: "true"}},
		"sorted: it applies to a key":                                            {Starts: registry.Expression{Text: "true"}, Fields: fields("n", "count()"), Sorted: true},
		"key: the rows have no field shp (did you mean shop?)":                   {Key: []string{"shp"}},
		"fields.n: a field of a group is one of count, sum":                      {Key: []string{"shop"}, Fields: fields("n", "item.amount")},
		"fields.n: there is no function summ of groups (did you mean sum?)":      {Key: []string{"shop"}, Fields: fields("n", "summ(item.amount)")},
		"fields.n: sum needs numbers, not values of type string":                 {Key: []string{"shop"}, Fields: fields("n", "sum(item.shop)")},
		"fields.n: join needs a separator":                                       {Key: []string{"shop"}, Fields: fields("n", "join(item.shop)")},
		"fields.n: join needs texts, not values of type int: write string(...)":  {Key: []string{"shop"}, Fields: fields("n", "join(item.amount, ',')")},
		"fields.n: item has no field amout (did you mean amount?)":               {Key: []string{"shop"}, Fields: fields("n", "sum(item.amout)")},
		"fields.n: first needs an expression over item":                          {Key: []string{"shop"}, Fields: fields("n", "first()")},
		`fields: field "shop" is listed twice`:                                   {Key: []string{"shop"}, Fields: fields("shop", "count()")},
		"fields.n: min needs values with an order, not bools: write min(... ? 1": {Key: []string{"shop"}, Fields: fields("n", "min(item.amount > 1)")},
	} {
		cfg.Reader = reading(t, "in.csv")
		err := cfg.Validate()
		if err == nil {
			_, err = Components()[0].Types(&cfg, nil)
		}
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, reflect.TypeFor[config](), Components()[0].Config)
}

func TestSumsOfDecimalsAreExact(t *testing.T) {
	t.Parallel()
	s, err := row.NewSchema(row.Field{Name: "shop", Kind: row.DecimalKind}, row.Field{Name: "amount", Kind: row.DecimalKind, Nullable: true})
	require.NoError(t, err)
	nested := testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{
		"path": file(t, "shop,amount\n1.0,0.1\n1,0.20\n1.00,99999999999999999999.05\n2,\n"), "item": item.RowOf("", s), "header": "exact",
	})
	cfg := config{Reader: nested, Key: []string{"shop"}, Fields: fields("total", "sum(item.amount)", "most", "max(item.amount)", "all", "list(item.amount)")}
	require.Equal(t, []string{"1.0,99999999999999999999.35,99999999999999999999.05,[0.1,0.20,99999999999999999999.05]", "2,0,null,[null]"},
		texts(testexample.Read[item.Row](grouped(t, cfg))))
}
