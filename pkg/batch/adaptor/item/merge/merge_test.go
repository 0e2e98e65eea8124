//test:plain

package merge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func fields(t require.TestingT, list ...row.Field) item.Type {
	s, err := row.NewSchema(list...)
	require.NoError(t, err)
	return item.RowOf("", s)
}

func orders(t require.TestingT) item.Type {
	return fields(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "customer", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
}

func customers(t require.TestingT) item.Type {
	return fields(t, row.Field{Name: "customer", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
}

func reading(t require.TestingT, dir, name, text string, of item.Type) registry.Nested {
	path := filepath.Join(dir, name+".csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{"path": path, "item": of, "header": "exact", "max_line": 1000})
}

func merged(t require.TestingT, cfg config) item.Reader {
	out, err := Components()[0].Types(&cfg, nil)
	require.NoError(t, err)
	r, err := newReader(context.Background(), cfg, registry.BuildContext{Out: out})
	require.NoError(t, err)
	return r
}

func texts(rows []item.Row) (list []string) {
	for _, r := range rows {
		var values []string
		for _, v := range r.Values() {
			values = append(values, v.String())
		}
		list = append(list, strings.Join(values, ","))
	}
	return list
}

func mergeOf(t require.TestingT, dir, kind, left, right string) config {
	return config{
		Left: reading(t, dir, "orders", "id,customer,name\n"+left, orders(t)), Right: reading(t, dir, "customers", "customer,name\n"+right, customers(t)), Key: []string{"customer"}, Kind: kind,
	}
}

const (
	someOrders    = "1,1,a\n2,3,b\n3,3,c\n4,4,d\n5,6,e\n"
	someCustomers = "0,zero\n3,three\n3,tres\n5,five\n6,six\n9,nine\n"
)

func TestRowsOfBothSidesMeetByTheirKey(t *testing.T) {
	t.Parallel()
	both := []string{"2,3,b,three", "2,3,b,tres", "3,3,c,three", "3,3,c,tres"}
	for kind, want := range map[string][]string{
		"inner": append(slices.Clone(both), "5,6,e,six"),
		"left":  append(append([]string{"1,1,a,null"}, both...), "4,4,d,null", "5,6,e,six"),
		"full":  append(append([]string{"null,0,null,zero", "1,1,a,null"}, both...), "4,4,d,null", "null,5,null,five", "5,6,e,six", "null,9,null,nine"),
	} {
		r := merged(t, mergeOf(t, t.TempDir(), kind, someOrders, someCustomers))
		require.Equal(t, want, texts(testexample.Read[item.Row](r)), kind)
	}
}

func TestTheReaderKeepsTheContractOfReaders(t *testing.T) {
	t.Parallel()
	var left, right strings.Builder
	for i := range 120 {
		fmt.Fprintf(&left, "%d,%d,l%d\n", i, i/3, i)
		if i%17 == 5 {
			fmt.Fprintf(&left, "x,%d,bad\n", i/3)
		}
		fmt.Fprintf(&right, "%d,r%d\n", i/2, i)
		if i%13 == 4 {
			fmt.Fprintf(&right, "x,bad\n")
		}
	}
	for _, kind := range []string{"inner", "left", "full"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := mergeOf(t, t.TempDir(), kind, left.String(), right.String())
			source := reflect.ValueOf(cfg.Left.Config).Elem().FieldByName("Path").String()
			itemtest.Reader(t, itemtest.ReaderConfig{Source: source, Joins: true, New: func(t testing.TB) item.Reader { return merged(t, cfg) }})
		})
	}
}

func TestAMergeIsAJoin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 12)
		left, right := keys.Draw(t, "left"), keys.Draw(t, "right")
		slices.Sort(left)
		slices.Sort(right)
		kind := rapid.SampledFrom([]string{"inner", "left", "full"}).Draw(t, "kind")
		var l, r strings.Builder
		var want []string
		met := map[int]bool{}
		for i, k := range left {
			fmt.Fprintf(&l, "%d,%d,l\n", i, k)
			n := len(want)
			for j, other := range right {
				if other == k {
					want, met[j] = append(want, fmt.Sprintf("%d,%d,l,r%d", i, k, j)), true
				}
			}
			if len(want) == n && kind != "inner" {
				want = append(want, fmt.Sprintf("%d,%d,l,null", i, k))
			}
		}
		for j, k := range right {
			fmt.Fprintf(&r, "%d,r%d\n", k, j)
			if !met[j] && kind == "full" {
				want = append(want, fmt.Sprintf("null,%d,null,r%d", k, j))
			}
		}
		got := texts(testexample.Read[item.Row](merged(t, mergeOf(t, dir, kind, l.String(), r.String()))))
		require.ElementsMatch(t, want, got)
	})
}

func TestWhatCannotBeMergedIsRefused(t *testing.T) {
	t.Parallel()
	end := func(cfg config) error {
		r := merged(t, cfg)
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
		for {
			if err := r.Fill(t.Context(), r.NewItems(1), 1); err != nil {
				return err
			}
		}
	}
	require.ErrorContains(t, end(mergeOf(t, t.TempDir(), "left", "1,2,a\n2,1,b\n", "")), "orders.csv:3: 1 comes after 2: the rows are not sorted by the key")
	large := mergeOf(t, t.TempDir(), "left", "1,1,a\n", strings.Repeat("1,x\n", 100))
	large.MaxMemory = 1000
	require.ErrorContains(t, end(large), "the right rows with the key 1 take more than max_memory, 1000 bytes")
	for want, change := range map[string]func(c *config){
		"key: the left rows have no field custmer (did you mean customer?)": func(c *config) { c.Key = []string{"custmer"} },
		"key: the right rows have no field id":                              func(c *config) { c.Key = []string{"id"} },
		"key: field customer is listed twice":                               func(c *config) { c.Key = []string{"customer", "customer"} },
		"key: field customer of the right rows may be null": func(c *config) {
			c.Right = reading(t, t.TempDir(), "r", "", fields(t, row.Field{Name: "customer", Kind: row.Int, Nullable: true}))
		},
		"key: field customer is of type int on the left, but string on the right": func(c *config) {
			c.Right = reading(t, t.TempDir(), "r", "", fields(t, row.Field{Name: "customer", Kind: row.String}))
		},
		"max_memory: it is negative": func(c *config) { c.MaxMemory = -1 },
	} {
		cfg := mergeOf(t, t.TempDir(), "left", someOrders, someCustomers)
		change(&cfg)
		err := cfg.Validate()
		if err == nil {
			_, err = Components()[0].Types(&cfg, nil)
		}
		require.ErrorContains(t, err, want)
	}
}
