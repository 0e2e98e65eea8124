package csv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func people(t testing.TB) item.Type {
	return schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "city", Kind: row.String})
}

const otherWidth = " like the first one (see the key columns)"

func TestWithoutHeaderAllRecordsAreAsWideAsTheFirst(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: file(t, "in.csv", "5,\"x\ny,z\nA,B\n1,Smith,Paris\n2,Doe, John,Rome\n3,Roe,Oslo,,\n4,Poe,Kiel\n")}
	want := []string{
		`!:1: a quoted field is malformed at line 7, character 12: extraneous or missing " in quoted-field`, "!:2: the record has 2 fields, at least 3 are needed", "!:3: the record has 2 fields, at least 3 are needed",
		"1|Smith|Paris", "!:5: the record has 4 fields, not 3" + otherWidth, "!:6: the record has 5 fields, not 3" + otherWidth, "4|Poe|Kiel",
	}
	require.Equal(t, want, outcomes(t, cfg, people(t), nil))
	itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
		r, err := newReader(cfg, people(t))
		require.NoError(t, err)
		return r
	}})

	cfg.Columns = 4
	cfg.Path = file(t, "in.csv", "1,Smith,Paris\n2,Doe,Rome,x\n")
	require.Equal(t, []string{"!:1: the record has 3 fields, not 4", "2|Doe|Rome"}, outcomes(t, cfg, people(t), nil))
	require.Equal(t, []string{"!:1: the record has 3 fields, not 4", "2|Doe|Rome|x"}, outcomes(t, cfg, nil, nil))
	cfg.Columns = 2
	r, err := newReader(cfg, people(t))
	require.NoError(t, err)
	require.EqualError(t, r.Component().(item.Opener).Open(t.Context(), nil), "csv: "+cfg.Path+": the records have 2 fields, but the item has 3")
	require.ErrorContains(t, (&readerConfig{Columns: -1}).Validate(), "columns: it is negative")
	require.ErrorContains(t, (&readerConfig{Columns: 3, Header: headerExact}).Validate(), "columns: the header determines")
}

func TestAnOlderPositionGetsTheWidthOfTheFirstRecord(t *testing.T) {
	t.Parallel()
	cfg := readerConfig{Path: file(t, "in.csv", "1,Smith,Paris\n2,Doe, John,Rome\n")}
	_, at := walk(t, cfg, nil)
	old := strings.Replace(string(at[1]), `,"width":3`, "", 1)
	require.NotEqual(t, string(at[1]), old)
	require.Equal(t, []string{"!:2: the record has 4 fields, not 3" + otherWidth}, outcomes(t, cfg, people(t), item.Position(old)))
}

func TestARedrivenRecordIsAsWideAsItsFile(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat(",x", 400)
	for _, more := range []string{"", wide} { // the names of many columns are not stored
		path := filepath.Join(t.TempDir(), "in.csv")
		require.NoError(t, os.WriteFile(path, []byte("1,Smith,Paris"+more+"\n2,Doe, John,Rome"+more+"\n"), 0o600))
		r, err := newReader(readerConfig{Path: path}, people(t))
		require.NoError(t, err)
		unread := itemkit.UnreadItems(t, r)
		require.Len(t, unread, 1)
		require.Equal(t, more == "", unread[0].Raw.Columns != nil)
		r, err = newReader(readerConfig{Path: path}, people(t))
		require.NoError(t, err)
		open := r.Component().(item.RawOpener)
		require.NoError(t, open.OpenRaw(t.Context(), item.Meta{Path: path, Line: 2}, unread[0].Raw))
		require.ErrorContains(t, r.Fill(t.Context(), r.NewItems(1), 1), "fields, not ")
		raw := unread[0].Raw
		raw.Text = strings.Replace(raw.Text, "Doe, John", `"Doe, John"`, 1)
		require.NoError(t, open.OpenRaw(t.Context(), item.Meta{Path: path, Line: 2}, raw))
		items := r.NewItems(1)
		require.NoError(t, r.Fill(t.Context(), items, 1))
		require.Equal(t, "2|Doe, John|Rome", textOf(items.At(0)))
	}
}
