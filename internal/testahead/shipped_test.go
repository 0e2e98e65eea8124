package testahead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/testcomponent"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/text"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type component string

const (
	inMemory component = "in memory" // a fileWriter
	asCSV    component = "csv"
	asLines  component = "lines"
	asFixed  component = "fixed"
	// asRecords: fixed, with a header and a trailer of each item.
	asRecords component = "fixed with records"
)

func (c component) make(path string, use registry.BuildContext) (item.Writer, error) {
	type settings = testcomponent.Settings
	column := settings{"place": settings{"at": "2-7"}}
	sums := settings{"place": settings{"at": "9-18"}}
	from, config := text.Components(), settings{"path": path}
	name := "fixed"
	switch c {
	case asCSV:
		from, name = csv.Components(), "csv"
	case asLines:
		name = "lines"
	case asFixed:
		config["columns"], config["record"], config["header"] = column, "D", "H"
		config["trailer"] = settings{"begins": "T", "count": "2-8", "sums": map[string]string{"place": "9-18"}}
	case asRecords:
		config["records"] = settings{
			"F": settings{"as": "header"}, "B": settings{"as": "header", "columns": column}, "D": settings{"columns": column},
			"E": settings{"as": "trailer", "of": "B", "count": "2-8", "sums": sums}, "Z": settings{"as": "trailer", "count": "2-8", "sums": sums},
		}
	case inMemory:
	}
	use.In = item.TypeOf[thing]("thing")
	return testcomponent.Make[item.Writer](testcomponent.Named(from, name), registry.KindWriter, config, use)
}

func (c component) placesIn(content string) (list []int) {
	pattern := `(?m)^(\d+)$`
	if c == asFixed || c == asRecords {
		pattern = `(?m)^D *(\d+)$`
	}
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(content, -1) {
		place, _ := strconv.Atoi(found[1]) //nolint:errcheck // it has digits only
		list = append(list, place)
	}
	return list
}

// shippedWriter is the writer of a component, with faults before its calls.
type shippedWriter struct {
	item.Writer
	file shippedFile
}

func newShipped(w *world, n int) *shippedWriter {
	made, err := w.s.Outputs[n].As.make(w.target.path(n), w.use)
	mustMeet(err)
	return &shippedWriter{made, shippedFile{made.Component().(outputFile), w, n}}
}

func (s *shippedWriter) Component() any { return s.file }

func (s *shippedWriter) Write(ctx context.Context, items item.Items) error {
	var list []thing
	for i := range items.Len() {
		list = append(list, items.At(i).(thing))
	}
	if err := s.file.meets(ctx, list); err != nil {
		return err
	}
	return s.Writer.Write(ctx, items)
}

func (s *shippedWriter) NewEncoding() item.Encoding {
	return s.Writer.(itemextra.Encoder).NewEncoding()
}

func (s *shippedWriter) writeEncoded(ctx context.Context, of *encoding) (bool, error) {
	failure := s.file.meets(ctx, of.items)
	if failure != nil && !errors.Is(failure, errBeyond) {
		return false, failure
	}
	done, err := s.Writer.(itemextra.Encoder).WriteEncoded(ctx, of.inner)
	return done, errors.Join(failure, err)
}

type outputFile interface {
	item.Opener
	item.Preparer
	item.Positioner
	item.Rewinder
	item.Releaser
	item.Finisher
	item.Closer
	itemextra.AheadWriter
}

type shippedFile struct {
	outputFile
	w *world
	n int
}

func (f shippedFile) note(call string) {
	if !f.w.s.Outputs[f.n].Beyond {
		f.w.note("%s %d", call, f.n)
	}
}

// meets is as beyondWriter.Write.
func (f shippedFile) meets(ctx context.Context, items []thing) error {
	f.note("write")
	if _, inTurn := tx.From(ctx, f.w.db.Name()); !inTurn {
		if f.beyond().fails(items) {
			return errBeyond
		}
		return nil
	}
	for _, it := range items {
		if err := f.w.meetWrite(f.n, it.Place, len(items)); err != nil {
			return err
		}
	}
	return nil
}

func (f shippedFile) beyond() beyondWriter { return beyondWriter{fileWriter{f.w, f.n}} }

func (f shippedFile) WritesAhead() bool {
	return f.w.s.Outputs[f.n].Beyond && f.beyond().WritesAhead() && f.outputFile.WritesAhead()
}

func (f shippedFile) Prepare(ctx context.Context) error {
	return errors.Join(f.w.meet(atPrepare), f.outputFile.Prepare(ctx))
}

func (f shippedFile) Position() (item.Position, error) {
	if err := f.w.meet(atWriterPosition); err != nil {
		return nil, err
	}
	return f.outputFile.Position()
}

func (f shippedFile) Rewind(ctx context.Context, at item.Position) error {
	f.note("rewind")
	if err := f.w.meet(atRewind); err != nil {
		return err
	}
	return f.outputFile.Rewind(ctx, at)
}

func (f shippedFile) Release(ctx context.Context) error {
	f.w.note("release %d", f.n)
	if err := f.w.meet(atRelease); err != nil {
		return err
	}
	return f.outputFile.Release(ctx)
}

func (f shippedFile) Finish(ctx context.Context) error {
	f.w.note("finish %d", f.n)
	if err := f.w.meet(atFinish); err != nil {
		return err
	}
	return f.outputFile.Finish(ctx)
}

func (f shippedFile) Close(ctx context.Context) error {
	f.w.note("close %d", f.n)
	return f.outputFile.Close(ctx)
}

func (t *target) path(writer int) string {
	return filepath.Join(t.folder, fmt.Sprintf("run-%d-out-%d.txt", t.run, writer))
}

// content returns the committed bytes of a file, or all of a published one.
func (t *target) content(rt *rapid.T, at json.RawMessage, writer int) string {
	published, err := os.ReadFile(t.path(writer))
	if err == nil {
		return string(published)
	}
	require.ErrorIs(rt, err, fs.ErrNotExist)
	var position filestream.OutputPosition
	if at != nil {
		require.NoError(rt, json.Unmarshal(at, &position))
	}
	if position.Part == "" {
		return ""
	}
	part, err := os.ReadFile(position.Path + position.Part)
	require.NoError(rt, err)
	return string(part[:position.Offset])
}
