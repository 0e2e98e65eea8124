//test:plain

package files

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type folder struct {
	dir     string
	context *core.ExecutionContext
}

func newFolder(t testing.TB, texts ...string) *folder {
	t.Helper()
	f := &folder{dir: t.TempDir(), context: core.NewExecutionContext()}
	for i, text := range texts {
		f.write(t, fmt.Sprintf("%d.csv", i+1), text)
	}
	return f
}

func (f *folder) write(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

func (f *folder) reader(t testing.TB, change func(c *config)) item.Reader {
	t.Helper()
	schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int})
	require.NoError(t, err)
	cfg := config{Glob: filepath.Join(f.dir, "*.csv"), Reader: testcomponent.Nested(csv.Components(), registry.KindReader, testcomponent.Settings{"header": "exact", "item": item.RowOf("", schema)})}
	if change != nil {
		change(&cfg)
	}
	r, err := newReader(t.Context(), cfg, registry.BuildContext{StepContext: func() *core.ExecutionContext { return f.context }})
	require.NoError(t, err)
	return r
}

func ids(rows []item.Row) []int64 {
	list := []int64{}
	for _, r := range rows {
		list = append(list, r.At(0).Int())
	}
	return list
}

func TestFilesAreReadInTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "id\n1\n2\n", "id\n", "id\n3\n")
	require.Equal(t, []int64{1, 2, 3}, ids(testexample.Read[item.Row](f.reader(t, nil))))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(f.dir, "3.csv"), old, old))
	require.Equal(t, []int64{3, 1, 2}, ids(testexample.Read[item.Row](f.reader(t, func(c *config) { c.Order = "modified" }))))

	none := func(c *config) { c.Glob = filepath.Join(f.dir, "none", "*.csv") }
	require.Empty(t, testexample.Read[item.Row](f.reader(t, none)))
	r := f.reader(t, func(c *config) { none(c); c.Required = true })
	require.ErrorContains(t, r.Component().(item.Opener).Open(t.Context(), nil), "no file matches")
}

func TestTheReaderKeepsTheContractOfReaders(t *testing.T) {
	t.Parallel()
	for _, texts := range [][]string{nil, {"id\n"}, {"id\n1\n"}, {"id\n1\nbad\n2\n", "id\n", "id\n3\n\n4,5\n6\n", "id\n7\n"}} {
		f := newFolder(t, texts...)
		cfg := itemtest.ReaderConfig{New: func(t testing.TB) item.Reader { return f.reader(t, nil) }}
		if len(texts) > 0 {
			cfg.Change = func(t testing.TB) { f.write(t, "1.csv", "id\n999\n") }
		}
		if len(texts) > 1 {
			cfg.Source, cfg.Joins = filepath.Join(f.dir, "1.csv"), true
		}
		itemtest.Reader(t, cfg)
	}
}

func TestARestartKeepsToTheFilesOfTheFirstAttempt(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "id\n1\n2\n", "id\n3\n", "id\n4\n")
	first := f.reader(t, nil)
	require.NoError(t, first.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, first.Fill(t.Context(), first.NewItems(3), 3))
	at, err := first.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.NoError(t, first.Component().(item.Closer).Close(t.Context()))
	restart := func(accept bool) ([]int64, error) {
		r := f.reader(t, nil)
		if accept {
			r.Component().(itemextra.ChangesAccepter).AcceptChanges()
		}
		if err := r.Component().(item.Opener).Open(t.Context(), at); err != nil {
			return nil, err
		}
		items := r.NewItems(9)
		require.Error(t, r.Fill(t.Context(), items, 9))
		require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
		var rows []item.Row
		for i := range items.Len() {
			rows = append(rows, items.At(i).(item.Row))
		}
		return ids(rows), nil
	}
	f.write(t, "0.csv", "id\n100\n")
	f.write(t, "9.csv", "id\n900\n")
	got, err := restart(false)
	require.NoError(t, err)
	require.Equal(t, []int64{4}, got, "not the files added later")

	f.write(t, "3.csv", "id\n4\n5\n")
	_, err = restart(false)
	require.ErrorContains(t, err, "files: cannot restart: "+filepath.Join(f.dir, "3.csv")+" changed since the step began: its size or modification time is different; --accept-changes")
	got, err = restart(true)
	require.NoError(t, err)
	require.Equal(t, []int64{4, 5}, got)

	require.NoError(t, os.Remove(filepath.Join(f.dir, "1.csv")))
	_, err = restart(false)
	require.ErrorContains(t, err, "1.csv changed since the step began: it does not exist any more")
	_, err = restart(true)
	require.NoError(t, err, "it was read")
	require.NoError(t, os.Remove(filepath.Join(f.dir, "3.csv")))
	_, err = restart(true)
	require.ErrorContains(t, err, "3.csv has not been read yet, and it does not exist any more: restore it")

	f.context.Delete("surfin.files")
	_, err = restart(true)
	require.ErrorContains(t, err, "this execution does not store the list of files")
}

// Rule D4.
func TestARestartKeepsToThousandsOfFiles(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	for i := range 4000 {
		f.write(t, fmt.Sprintf("%x.csv", sha256.Sum256(fmt.Append(nil, i))), fmt.Sprintf("id\n%d\n", i))
	}
	r := f.reader(t, nil)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	first := r.NewItems(3000)
	require.NoError(t, r.Fill(t.Context(), first, 3000))
	at, err := r.Component().(item.Positioner).Position()
	require.NoError(t, err)
	require.Less(t, len(at), ports.MaxPositionBytes)
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	stored, err := f.context.Encode()
	require.NoError(t, err)
	require.Greater(t, len(stored), core.MaxContextBytes)
	f.context, err = core.ParseExecutionContext(stored)
	require.NoError(t, err)
	f.write(t, "0.csv", "id\n-1\n")
	f.write(t, "fffffff.csv", "id\n-2\n")

	r = f.reader(t, nil)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), at))
	rest := r.NewItems(3000)
	require.ErrorIs(t, r.Fill(t.Context(), rest, 3000), io.EOF)
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	read := map[int64]bool{}
	for _, items := range []item.Items{first, rest} {
		for i := range items.Len() {
			v, _ := items.At(i).(item.Row).Get("id")
			read[v.Int()] = true
		}
	}
	require.Equal(t, 4000, first.Len()+rest.Len())
	require.Len(t, read, 4000)
	require.False(t, read[-1] || read[-2], "files added later")
}

func TestMoreFilesThanTheListHoldsAreRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	list := make([]filestream.Listed, 100_000)
	for i := range list {
		sum := sha256.Sum256(fmt.Append(nil, i))
		list[i] = filestream.Listed{Path: fmt.Sprintf("/data/in/%x.csv", sum[:16]), Mark: fmt.Sprintf("%x", sum[16:20])}
	}
	text, err := filestream.EncodeList(list)
	require.NoError(t, err)
	decoded, err := filestream.DecodeList(text)
	require.NoError(t, err)
	require.Equal(t, list, decoded)
	for len(list) < 800_000 {
		for i := range list[:min(len(list), 400_000)] {
			sum := sha256.Sum256(fmt.Append(nil, len(list), i))
			list = append(list, filestream.Listed{Path: fmt.Sprintf("%x", sum[:16]), Mark: fmt.Sprintf("%x", sum[16:20])})
		}
	}
	_, err = filestream.EncodeList(list)
	require.ErrorContains(t, err, "files is too long to be stored for a restart")
}

func TestThePatternIsChecked(t *testing.T) {
	t.Parallel()
	for glob, want := range map[string]string{"": "glob: the pattern is missing", "a[": "glob: \"a[\" is not a pattern", "**/a": "** is not supported"} {
		require.ErrorContains(t, (&config{Glob: glob}).Validate(), want)
	}
}

func TestAFileWhoseHeaderCannotBeReadEndsTheReading(t *testing.T) {
	t.Parallel()
	f := newFolder(t, "id\n1\n", "\"id\"x\n2\n")
	r := f.reader(t, nil)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(1), 1))
	err := r.Fill(t.Context(), r.NewItems(1), 1)
	require.ErrorContains(t, err, "2.csv")
	require.False(t, item.IsConsumed(err))
	require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
}
