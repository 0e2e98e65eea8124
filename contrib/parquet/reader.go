package parquet

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type readerConfig struct {
	Path   string    `key:"path" main:"true" path:"true" required:"true" doc:"The file to read."`
	Item   item.Type `key:"item" required:"true" doc:"The type of the items. Only these columns are read: by name, or by a path through structs, such as from: customer.name."`
	Groups string    `key:"groups" doc:"The row groups to read: ${part.groups} of the partitioner parquet. Without it all are read."`
}

func reader() registry.Component {
	return registry.Component{
		Kind: registry.KindReader, Name: "parquet",
		Summary: "Reads the rows of a parquet file.",
		Doc: `Only the columns of the item are read. A struct, a map or a list of structs becomes json, a list
of simple values a list. Timestamps without a time zone are read in the zone of the field; INT96 is UTC;
nanoseconds are cut to microseconds. A value that the field cannot hold is an invalid item. A column of a
type for which items have none (TIME, INTERVAL, BSON, VARIANT, GEOMETRY), and a damaged file, fail the step.

A restart continues at the row group and row of the last commit, in the same file only.`,
		Example: `job: load
flow:
- step: load
  chunk:
    reader: {parquet: {path: in.parquet, item: {id: int, price: decimal, at: timestamp null}}}
    writer: {csv: out/prices.csv}`,
		Config: reflect.TypeFor[readerConfig](),
		Types: func(cfg any, _ item.Type) (item.Type, error) {
			t := cfg.(*readerConfig).Item
			if t.Schema() == nil || t.Schema().IsOpen() {
				return nil, &registry.ConfigError{Key: "item", Err: errors.New("parquet needs an item type with fields")}
			}
			return t, nil
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newReader(*cfg.(*readerConfig), b.Out)
		},
	}
}

func newReader(cfg readerConfig, itemType item.Type) (item.Reader, error) {
	r := &rows{path: cfg.Path, schema: itemType.Schema()}
	if cfg.Groups != "" {
		of, err := parseRange(cfg.Groups)
		if err != nil {
			return nil, err
		}
		r.part = &of
	}
	return itemType.FromRecords(r)
}

// rows reads the rows of a file.
type rows struct {
	path   string
	schema *row.Schema
	part   *groupRange // nil reads all

	whole   *filestream.Whole
	groups  []pq.RowGroup // up to the last one to read
	about   []format.RowGroup
	columns []*column // by the field; nil if the file lacks it
	leaves  []*leaf   // of the open row group, by the number of the leaf; nil if not read
	at      position
	ordinal int64 // rows before the next one
	dead    error
}

// position is the next row.
type position struct {
	Group int                    `json:"group"`
	Row   int64                  `json:"row"`
	File  filestream.Fingerprint `json:"file"`
}

func (r *rows) Schema() *row.Schema { return r.schema }

func (r *rows) Meta() item.Meta { return item.Meta{Path: r.path, Line: r.ordinal} }

func (r *rows) IndependentOf(string) bool { return true }

func (r *rows) Open(ctx context.Context, at item.Position) error {
	r.whole, r.leaves, r.dead, r.at, r.ordinal = nil, nil, nil, position{}, 0
	var before *filestream.Fingerprint
	if at != nil {
		if err := json.Unmarshal(at, &r.at); err != nil {
			return fmt.Errorf("parquet: cannot restart: the stored position is unreadable: %w", err)
		}
		before = &r.at.File
	}
	whole, err := filestream.OpenWhole(ctx, r.path, before)
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	if err := r.guard(func() error { return r.openFile(whole) }); err != nil {
		return errors.Join(err, whole.Close())
	}
	r.whole, r.at.File = whole, whole.Print
	return nil
}

func (r *rows) openFile(whole *filestream.Whole) error {
	file, err := openParquet(whole)
	if err != nil {
		return err
	}
	columns, err := readSchema(file.Metadata().Schema)
	if err != nil {
		return err
	}
	if r.columns, err = bind(r.schema, columns); err != nil {
		return exception.Fatal("", err)
	}
	r.groups, r.about = file.RowGroups(), file.Metadata().RowGroups
	if p := r.part; p != nil {
		if mark := whole.Opened().Mark(); mark != p.Mark || p.Last > len(r.groups) {
			return exception.Fatal("", errors.New("the file has changed since the step's partitions were made: --from-start makes them again"))
		}
		r.groups = r.groups[:p.Last]
		r.at.Group = max(r.at.Group, p.First-1)
	}
	if r.at.Group < 0 || r.at.Row < 0 || r.at.Group > len(r.groups) || r.at.Group == len(r.groups) && r.at.Row > 0 || r.at.Group < len(r.groups) && r.at.Row > r.groups[r.at.Group].NumRows() {
		return exception.Fatal("", fmt.Errorf("cannot restart at row %d of row group %d: there is none", r.at.Row, r.at.Group))
	}
	for _, g := range r.groups[:r.at.Group] {
		r.ordinal += g.NumRows()
	}
	r.ordinal += r.at.Row
	return nil
}

func openParquet(whole *filestream.Whole) (*pq.File, error) {
	if size := whole.Print.Size; size >= 8 {
		var end [8]byte
		if _, err := whole.ReadAt(end[:], size-8); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if footer := int64(binary.LittleEndian.Uint32(end[:])); footer > size-8 {
			return nil, fmt.Errorf("its footer claims %d bytes, and the file has %d", footer, size)
		}
	}
	return pq.OpenFile(whole, whole.Print.Size, pq.SkipBloomFilters(true), pq.SkipPageIndex(true))
}

// ReadRecord reads the next row. One with a value that does not fit is an item.ConsumedError.
func (r *rows) ReadRecord(ctx context.Context, dst []row.Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.dead != nil {
		return r.dead
	}
	if r.whole == nil {
		return errors.New("parquet: the reader is not open")
	}
	var invalid error
	err := r.guard(func() (err error) {
		invalid, err = r.read(dst)
		return err
	})
	switch {
	case errors.Is(err, io.EOF):
		return err
	case err != nil:
		r.dead = err
		return err
	}
	r.at.Row++
	r.ordinal++
	if invalid != nil {
		return item.Consumed(r.Meta(), exception.InvalidItem("", exception.ClassParse, invalid))
	}
	return nil
}

func (r *rows) read(dst []row.Value) (invalid, err error) {
	for {
		if r.at.Group == len(r.groups) {
			return nil, io.EOF
		}
		if r.at.Row < r.groups[r.at.Group].NumRows() {
			break
		}
		if err := r.closeGroup(); err != nil {
			return nil, err
		}
		r.at.Group, r.at.Row = r.at.Group+1, 0
	}
	if r.leaves == nil {
		if err := r.openGroup(); err != nil {
			return nil, err
		}
	}
	for i, c := range r.columns {
		v, unfit, err := r.value(i, c)
		if err != nil {
			return nil, err
		}
		if dst[i] = v; unfit != nil && invalid == nil {
			invalid = unfit
		}
	}
	return invalid, nil
}

func (r *rows) value(i int, c *column) (v row.Value, unfit, err error) {
	if c == nil {
		v, unfit = r.schema.Field(i).Missing()
		return v, unfit, nil
	}
	if c.read == nil {
		l := r.leaves[c.node.first]
		raw, err := l.one()
		if err != nil || raw.IsNull() {
			v, unfit = c.field.Missing()
			return v, unfit, err
		}
		v, unfit = c.simple(raw)
		return v, unfit, nil
	}
	for _, l := range r.leaves[c.node.first:c.node.end] {
		if err := l.readRow(); err != nil {
			return v, nil, err
		}
	}
	v, unfit = c.read(nested{r.leaves, c.field.Zone})
	return v, unfit, nil
}

func (r *rows) openGroup() error {
	chunks, about := r.groups[r.at.Group].ColumnChunks(), r.about[r.at.Group].Columns
	r.leaves = make([]*leaf, len(chunks))
	for _, c := range r.columns {
		if c == nil {
			continue
		}
		for i := c.node.first; i < c.node.end; i++ {
			if r.leaves[i] != nil {
				return exception.Fatal("", fmt.Errorf("two fields read the column %s", c.field.Source()))
			}
			// On damaged data the library's decoder doubles its memory until the process dies.
			if about[i].MetaData.Codec == format.Lz4Raw {
				return exception.Fatal("", fmt.Errorf("column %s is compressed with LZ4, which is not read: write it with zstd or snappy", c.field.Source()))
			}
			pages, err := pagesOf(chunks[i], about[i].MetaData, r.whole, r.whole.Print.Size)
			if err != nil {
				return err
			}
			if r.leaves[i], err = openLeaf(pages, c.read != nil, r.at.Row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *rows) closeGroup() error {
	var errs []error
	for _, l := range r.leaves {
		if l != nil {
			errs = append(errs, l.close())
		}
	}
	r.leaves = nil
	return errors.Join(errs...)
}

// guard recovers the panics of the library, which a damaged file causes, and says that a file is invalid only if it
// has not changed.
func (r *rows) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		err = r.explained(err)
	}()
	return f()
}

func (r *rows) explained(err error) error {
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && r.whole != nil && r.at.Group == len(r.groups) {
		if err != nil {
			if changed := r.whole.Unchanged(); changed != nil {
				return fmt.Errorf("parquet: %w", changed)
			}
		}
		return err
	}
	if r.whole != nil {
		if changed := r.whole.Unchanged(); changed != nil {
			return fmt.Errorf("parquet: %w", changed)
		}
	}
	var known *exception.BatchError
	if errors.As(err, &known) {
		return fmt.Errorf("parquet: %s: %w", r.path, err)
	}
	return exception.Fatal("", fmt.Errorf("parquet: %s is not a valid parquet file: %w", r.path, err))
}

// Position is the next row.
func (r *rows) Position() (item.Position, error) {
	if r.whole == nil {
		return nil, errors.New("parquet: the reader is not open")
	}
	return json.Marshal(r.at)
}

func (r *rows) Close(context.Context) error {
	if r.whole == nil {
		return nil
	}
	whole := r.whole
	err := r.guard(r.closeGroup)
	r.whole, r.dead = nil, errors.New("parquet: the reader is closed")
	return errors.Join(err, whole.Close())
}

func names(columns []*node) []string {
	list := make([]string, len(columns))
	for i, n := range columns {
		list[i] = n.name
	}
	return list
}

func unknownColumn(f *row.Field, columns []*node) error {
	return fmt.Errorf("the file has no column %q for field %s%s", f.Source(), f.Name, nearest.Hint(f.Source(), names(columns)))
}
