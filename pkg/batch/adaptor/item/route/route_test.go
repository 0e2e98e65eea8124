//test:plain

package route

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type order struct {
	ID    int
	Total int
}

func writing(path string) registry.Nested {
	return testcomponent.Nested(csv.Components(), registry.KindWriter, testcomponent.Settings{"path": path, "header": true})
}

func routed(t testing.TB, dir string, cfg config, attempt core.Attempt) item.Writer {
	t.Helper()
	for i := range cfg.To {
		cfg.To[i].Writer = writing(filepath.Join(dir, fmt.Sprintf("%d.csv", i+1)))
	}
	w, err := newWriter(t.Context(), cfg, itemtest.Use(item.TypeOf[order]("order"), attempt))
	require.NoError(t, err)
	return w
}

func when(conditions ...string) config {
	cfg := config{}
	for _, c := range conditions {
		cfg.To = append(cfg.To, branch{When: registry.Expression{Text: c}})
	}
	return cfg
}

func contents(t testing.TB, dir string) string {
	t.Helper()
	text := ""
	for _, name := range []string{"1.csv", "2.csv", "3.csv"} {
		part, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
		text += string(part)
	}
	return text
}

func TestAnItemGoesToTheFirstOrToAllWritersWhoseConditionHolds(t *testing.T) {
	t.Parallel()
	orders := []order{{1, 5}, {2, 50}, {3, 500}}
	dir := t.TempDir()
	testexample.Write(routed(t, dir, when("item.total > 100", "item.total > 10", ""), core.Attempt{Exclusive: true}), orders...)
	require.Equal(t, "id,total\n3,500\nid,total\n2,50\nid,total\n1,5\n", contents(t, dir))

	dir = t.TempDir()
	all := when("item.total > 100", "item.total > 10", "")
	all.Match = "all"
	testexample.Write(routed(t, dir, all, core.Attempt{Exclusive: true}), orders...)
	require.Equal(t, "id,total\n3,500\nid,total\n2,50\n3,500\nid,total\n1,5\n", contents(t, dir))

	w := routed(t, t.TempDir(), when("item.total > 100"), core.Attempt{Exclusive: true})
	require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
	require.ErrorContains(t, w.Write(t.Context(), &item.Slice[order]{Items: orders}), "no writer accepts the item")
	require.NoError(t, w.Component().(item.Closer).Close(t.Context()))
}

func TestTheWriterKeepsTheContractOfWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fresh := func(t testing.TB, attempt core.Attempt) item.Writer {
		attempt.Left, attempt.From = inner(attempt.Left), inner(attempt.From)
		return routed(t, dir, when("item.total > 100", "item.total < 0", ""), attempt)
	}
	itemtest.Writer(t, itemtest.WriterConfig{
		New:    func(t testing.TB) item.Writer { return fresh(t, core.Attempt{Exclusive: true}) },
		NewFor: func(t testing.TB, attempt core.Attempt) item.Writer { return fresh(t, attempt) },
		Chunks: func(testing.TB) []item.Items {
			return itemtest.Chunks([]order{{1, 5}, {2, 500}}, []order{{3, 6}}, []order{{4, 700}, {5, 7}, {6, 900}})
		},
		Contents: func(t testing.TB) string { return contents(t, dir) },
		Clear: func(t testing.TB) {
			names, err := filepath.Glob(filepath.Join(dir, "*"))
			require.NoError(t, err)
			for _, name := range names {
				require.NoError(t, os.RemoveAll(name))
			}
		},
		Want:   "id,total\n2,500\n4,700\n6,900\nid,total\nid,total\n1,5\n3,6\n5,7\n",
		Hidden: true,
	})
}

func inner(positions []item.Position) []item.Position {
	var list []item.Position
	for _, at := range positions {
		list = append(list, itemextra.InnerPositions(at)...)
	}
	return list
}

func TestTheConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]config{
		"to: the writers are missing":                        {},
		"to: route 1 has no condition":                       when("", "true"),
		`to: the name "a b" of route 1 is not an identifier`: {To: []branch{{Name: "a b"}}},
		"to: the name a is used twice: choose another name":  {To: []branch{{Name: "a", When: registry.Expression{Text: "true"}}, {Name: "a"}}},
		"to.0.when: item has no field x":                     when("item.x > 1"),
		"to.0.when: a bool is needed here, not an int":       when("item.id"),
	} {
		err := cfg.Validate()
		if err == nil {
			for i := range cfg.To {
				cfg.To[i].Writer = writing("x.csv")
			}
			_, err = Components()[0].Types(&cfg, item.TypeOf[order]("order"))
		}
		require.ErrorContains(t, err, want)
	}
}
