//test:plain

package jsonfile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func file(t testing.TB, framing string, documents ...string) string {
	t.Helper()
	text := strings.Join(documents, "\n") + "\n"
	switch framing {
	case "json":
		text = "[" + strings.Join(documents, ",\n") + "]\n"
	case "items":
		text = `{"type":"x","items":[` + strings.Join(documents, ",\n") + `],"bbox":[1,2]}`
	}
	path := filepath.Join(t.TempDir(), "in."+framing)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

var element = regexp.MustCompile(`^(:\d+), element \d+`)

func rowsOf(t testing.TB, fields ...row.Field) item.Type {
	t.Helper()
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return item.RowOf("", s)
}

// outcomes reads all: items as text, errors of consumed ones without the path. The last one is the error that
// ended it, unless that is io.EOF.
func outcomes(t testing.TB, framing, path string, itemType item.Type) (all []string) {
	t.Helper()
	ctx := context.Background()
	r := newReader(t, framing, path, itemType)
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(ctx)) }()
	if err := r.Component().(item.Opener).Open(ctx, nil); err != nil {
		return []string{"open: " + strings.ReplaceAll(err.Error(), path, "PATH")}
	}
	for {
		items := r.NewItems(1)
		err := r.Fill(ctx, items, 1)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err == nil:
			all = append(all, text(items.At(0)))
		case item.IsConsumed(err):
			require.True(t, exception.IsSkippable(err))
			// The number of an element is the number of its line here.
			all = append(all, element.ReplaceAllString(strings.TrimPrefix(err.Error(), path), "$1"))
		default:
			return append(all, strings.ReplaceAll(err.Error(), path, "PATH"))
		}
	}
}

func text(of any) string {
	r, ok := of.(item.Row)
	if !ok {
		return fmt.Sprintf("%+v", of)
	}
	var parts []string
	for _, v := range r.Values() {
		parts = append(parts, v.String())
	}
	return strings.Join(parts, "|")
}

func TestADocumentThatMayMeanTwoThingsIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	type thing struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	row := rowsOf(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	for _, framing := range framings {
		path := file(t, framing, `{"id":1,"name":"a"}`, "{\"id\":2,\"name\":\"\xff\"}", `{"id":3,"name":"\ud800"}`,
			`{"id":4,"name":"x","name":"y"}`, `{"id":5,"name":"z","more":[{"a":1,"a":2}]}`, "{\"id\":6,\"name\":\"e\",\"\xff\":1}", `{"id":7,"name":"\ud83d\ude00"}`)
		faults := []string{
			":2: not valid UTF-8 (byte 17): {\"id\":2,\"name\":\"\uFFFD\"}",
			`:3: the lone surrogate \ud800 is no character (byte 17): {"id":3,"name":"\ud800"}`,
			`:4: the key "name" is there twice (byte 20): {"id":4,"name":"x","name":"y"}`,
			`:5: the key "a" is there twice (byte 35): {"id":5,"name":"z","more":[{"a":1,"a":2}]}`,
			":6: not valid UTF-8 (byte 21): {\"id\":6,\"name\":\"e\",\"\uFFFD\":1}",
		}
		require.Equal(t, append(append([]string{"1|a"}, faults...), "7|😀"), outcomes(t, framing, path, row), framing)
		require.Equal(t, append(append([]string{"{ID:1 Name:a}"}, faults...), "{ID:7 Name:😀}"), outcomes(t, framing, path, item.TypeOf[thing]("")), framing)
		itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader { return newReader(t, framing, path, row) }})
	}
}

func TestAnElementThatTheEncodingDoesNotHaveIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	row := rowsOf(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String})
	for _, framing := range framings {
		path := file(t, framing, `{"id":1,"name":"a"}`, `{"id":2,"name":"bX"}`, `{"id":3,"name":"`+"\uFFFD"+`"}`)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		units := []byte{0xFF, 0xFE}
		for _, r := range string(text) {
			if r == 'X' {
				r = 0xD800
			}
			units = append(units, byte(r), byte(r>>8))
		}
		require.NoError(t, os.WriteFile(path, units, 0o600))
		require.Equal(t, []string{"1|a", `:2: "{\"id\":2,\"name\":\"b\xff\"}" is not valid utf-16 (see the key encoding)`, "3|\uFFFD"}, outcomes(t, framing, path, row), framing)
	}
}

var quakes = []string{
	`{"id":"a","properties":{"mag":4.5,"place":null,"time":"2026-11-22"},"geometry":{"coordinates":[-70.25,-20.5]}}`,
	`{"geometry":{"coordinates":[1]},"properties":{"place":"Chile","mag":null,"time":"2026-11-23"},"id":"b"}`,
	`{"id":"c","properties":null,"geometry":null}`,
	`{"id":"d","properties":{"mag":1,"time":"2026-11-24"},"geometry":7}`,
	`{"id":"e","properties":{"mag":-1,"time":"2026-11-25"},"geometry":{"coordinates":[0,1]}}`,
}

func TestNestedValuesAreFoundByTheirPaths(t *testing.T) {
	t.Parallel()
	type quake struct {
		ID    string    `from:"id"`
		Mag   *float64  `from:"properties.mag"`
		Place *string   `from:"properties.place"`
		Day   core.Date `from:"properties.time"`
		Lat   *float64  `from:"geometry.coordinates[1]"`
	}
	float := func(x float64) *float64 { return &x }
	chile := "Chile"
	itemType := rowsOf(t,
		row.Field{Name: "id", Kind: row.String}, row.Field{Name: "mag", Kind: row.Float, From: "properties.mag", Nullable: true},
		row.Field{Name: "place", Kind: row.String, From: `properties["place"]`, Nullable: true},
		row.Field{Name: "day", Kind: row.DateKind, From: "properties.time"},
		row.Field{Name: "lat", Kind: row.Float, From: "geometry.coordinates[1]", Nullable: true})
	for _, framing := range framings {
		path := file(t, framing, quakes...)
		require.Equal(t, []string{
			"a|4.5|null|2026-11-22|-20.5", "b|null|Chile|2026-11-23|null",
			`:3: field day: null is not a date (the field is not nullable)`, ":4: field lat: geometry is not an object: 7", "e|-1|null|2026-11-25|1",
		}, outcomes(t, framing, path, itemType), framing)
		itemtest.Reader(t, itemtest.ReaderConfig{
			New: func(t testing.TB) item.Reader { return newReader(t, framing, path, item.TypeOf[quake]("")) },
			Want: []any{
				quake{ID: "a", Mag: float(4.5), Day: row.NewDate(2026, time.November, 22), Lat: float(-20.5)},
				quake{ID: "b", Place: &chile, Day: row.NewDate(2026, time.November, 23)},
				quake{ID: "e", Mag: float(-1), Day: row.NewDate(2026, time.November, 25), Lat: float(1)},
			},
		})
	}
}

func TestAKeyThatNoObjectHasIsAnErrorBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	itemType := rowsOf(t,
		row.Field{Name: "id", Kind: row.String}, row.Field{Name: "mag", Kind: row.Float, From: "properties.magg", Nullable: true},
		row.Field{Name: "lat", Kind: row.Float, From: "geometry.coordinates[9]", Nullable: true},
		row.Field{Name: "note", Kind: row.String, Nullable: true, Optional: true})
	type inner struct {
		Mag  *float64
		Felt *int
	}
	type quake struct {
		ID    string
		Props inner  `json:"properties"`
		Day   string `from:"properties.tim"`
		Note  string `json:",omitempty"`
		Extra *int   `optional:"true"`
		Own   int    `json:"-"`
	}
	const hint = "a field whose key may be missing is optional)"
	for _, framing := range framings {
		path := file(t, framing, quakes...)
		require.Equal(t, []string{"open: " + framing + `: PATH: no object has the key "properties.magg" for field mag (nearest: "properties.mag"; ` + hint +
			"\n" + `PATH: no object has the key "geometry.coordinates[9]" for field lat (nearest: "geometry.coordinates"; ` + hint}, outcomes(t, framing, path, itemType), framing)
		require.Equal(t, []string{"open: " + framing + `: PATH: no object has the key "properties.Felt" for field Felt (` + hint +
			"\n" + `PATH: no object has the key "properties.tim" for field Day (nearest: "properties.time"; ` + hint}, outcomes(t, framing, path, item.TypeOf[quake]("")), framing)
	}
}

func TestAKeyMayStandInAnyObjectHoweverFarBehind(t *testing.T) {
	t.Parallel()
	itemType := rowsOf(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "note", Kind: row.String, Nullable: true})
	var documents []string
	for i := range 500 { // more than one buffer
		documents = append(documents, fmt.Sprintf(`{"id":%d,"pad":%q}`, i, strings.Repeat("x", 400)))
	}
	for _, framing := range framings {
		require.Len(t, outcomes(t, framing, file(t, framing, documents...), itemType), 1, "no object has it")
		path := file(t, framing, append(documents, `{"id":0,"note":"x"}`)...)
		itemtest.Reader(t, itemtest.ReaderConfig{Restarts: 5, New: func(t testing.TB) item.Reader { return newReader(t, framing, path, itemType) }})
		require.Len(t, outcomes(t, framing, path, itemType), 501)
		require.Empty(t, outcomes(t, framing, file(t, framing), itemType), "where no object is, no key is missing")
	}
}

func TestMemoryIsBoundedWhateverTheFileHolds(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	item := rowsOf(t, row.Field{Name: "id", Kind: row.Int})
	for framing, want := range map[string]string{
		"json": "json: PATH:1: at offset 1, after element 0: the element that starts here is longer than 1048576 bytes (max_line)", "jsonl": ":1: the line has 16777217 bytes, more than 1048576 (max_line)",
		"items": "open: items: PATH:1: at offset 1, after element 0: the element that starts here is longer than 1048576 bytes (max_line)",
	} {
		path := filepath.Join(t.TempDir(), "endless")
		begin := `["`
		if framing == "items" {
			begin = `{"`
		}
		require.NoError(t, os.WriteFile(path, []byte(begin+strings.Repeat("x", 16<<20-1)), 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, want, outcomes(t, framing, path, item)[0])
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12<<20), framing)
	}
}
