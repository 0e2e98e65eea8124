package parquet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type writerConfig struct {
	Path        string            `key:"path" main:"true" path:"true" output:"true" required:"true" doc:"The file to write. The items are collected in PATH.part.NAME, and the file is made and published when the step is done; an earlier file is replaced."`
	Columns     map[string]string `key:"columns" doc:"Types that the item does not decide, by field: decimal(PRECISION,SCALE) of a decimal, up to 38 digits; int32 of an int; local of a timestamp, which is then written without a time zone, as a clock in the field's zone shows it."`
	Compression string            `key:"compression" default:"zstd" enum:"zstd,snappy,gzip,none" doc:"How the columns are compressed."`
	GroupRows   int               `key:"group_rows" default:"1000000" doc:"The most rows of a row group."`
	GroupSize   registry.Size     `key:"group_size" default:"32MB" doc:"A row group ends when its values have this size before compression. Memory holds one row group."`
	Append      bool              `key:"append" default:"false" doc:"Always false: nothing can follow the end of a parquet file. Write another file next to it."`
}

// Validate reports an invalid value of a key.
func (c *writerConfig) Validate() error {
	var errs []error
	bad := func(key, text string) { errs = append(errs, &registry.ConfigError{Key: key, Err: errors.New(text)}) }
	if c.Append {
		bad("append", "a parquet file has an end, and nothing can follow it: write another file next to it, such as orders-${params.date}.parquet")
	}
	if c.GroupRows < 0 {
		bad("group_rows", "it is negative")
	}
	if c.GroupSize < 0 {
		bad("group_size", "it is negative")
	}
	return errors.Join(errs...)
}

func writer() registry.Component {
	return registry.Component{
		Kind: registry.KindWriter, Name: "parquet",
		Summary: "Writes a parquet file.",
		Doc: `The columns are the fields of the items, in order, with the names of their source; a field that may be
null is an optional column. An int has 64 bits, a float is a DOUBLE, a timestamp an instant in microseconds, and
decimals have the scale of their field and 38 digits, unless ` + "`columns`" + ` says otherwise. A value that does not fit
is an invalid item.

The file is whole or nothing: each chunk is added to a journal, of which the file is made when the step is
complete. It is read back before it is published. A step that is killed at any moment, and restarted, writes the same values.`,
		Example: `job: export
flow:
- step: export
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, price: {type: decimal, scale: 2}, at: timestamp null}}}
    writer: {parquet: out/prices.parquet}`,
		Config: reflect.TypeFor[writerConfig](),
		Types: func(cfg any, in item.Type) (item.Type, error) {
			_, err := columnsOf(*cfg.(*writerConfig), in)
			return in, err
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newWriter(*cfg.(*writerConfig), b)
		},
	}
}

func columnsOf(cfg writerConfig, in item.Type) ([]*target, error) {
	var schema *row.Schema
	if in != nil {
		schema = in.Schema()
	}
	switch {
	case schema == nil:
		return nil, &registry.ConfigError{Err: errors.New("parquet needs items with fields")}
	case schema.IsOpen():
		return nil, &registry.ConfigError{Err: errors.New("the columns of a parquet file have types, but the fields of the items are known only when they are read: name them with item in the reader, or with a map that has only: true")}
	case schema.Len() == 0:
		return nil, &registry.ConfigError{Err: errors.New("the items have no fields, so that the file would have no columns")}
	}
	return targets(schema, cfg.Columns)
}

// newWriter returns a writer of items of the type use.In. The file belongs to use.Attempt (rule C15v).
func newWriter(cfg writerConfig, use registry.BuildContext) (item.Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	columns, err := columnsOf(cfg, use.In)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	m := &maker{path: cfg.Path, columns: columns, compression: cfg.Compression}
	m.groupRows, m.groupSize = cmp.Or(int64(cfg.GroupRows), 1_000_000), cmp.Or(int64(cfg.GroupSize), 32_000_000)
	return use.In.ToRecords(&journalWriter{maker: m, Publisher: filestream.NewPublisher("parquet", filestream.OutputConfig{
		Path: cfg.Path, Compression: filestream.CompressionNone, Maker: m, Mode: use.FileMode, Attempt: use.Attempt,
		Form: filestream.Form{filestream.FormWriter: "parquet", "columns": columnsText(columns)},
	})})
}

// journalWriter collects the rows of a file in a journal.
type journalWriter struct {
	filestream.Publisher
	*maker
	buf rowsText
}

// rowsText are rows as the journal has them.
type rowsText struct {
	columns []*target
	text    []byte
	rows    int64
}

type filePosition struct {
	filestream.OutputPosition
	Rows int64 `json:"rows"`
}

func (w *journalWriter) Open(ctx context.Context, at item.Position) error {
	return w.start(at, func(at *filestream.OutputPosition) error { return w.Out.Open(ctx, at) })
}

func (w *journalWriter) Rewind(_ context.Context, at item.Position) error {
	return w.start(at, w.Out.Rewind)
}

func (w *journalWriter) start(at item.Position, place func(*filestream.OutputPosition) error) error {
	var pos filePosition
	var from *filestream.OutputPosition
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("parquet: cannot restart: the stored position is unreadable: %w", err)
		}
		from = &pos.OutputPosition
	}
	w.rows = pos.Rows
	return w.Named(place(from))
}

// WriteRecords encodes all records first: if one does not fit, the journal stays unchanged.
func (w *journalWriter) WriteRecords(_ context.Context, schema *row.Schema, records [][]row.Value) error {
	w.buf.columns = w.columns
	if err := w.buf.EncodeRecords(schema, records); err != nil {
		return err
	}
	return w.write(&w.buf)
}

func (w *journalWriter) NewEncoding() item.RecordEncoding { return &rowsText{columns: w.columns} }

func (w *journalWriter) WriteEncoded(_ context.Context, of item.RecordEncoding) (bool, error) {
	t, ok := of.(*rowsText)
	if !ok {
		return false, fmt.Errorf("parquet: a %T is not an encoding of this writer", of)
	}
	return true, w.write(t)
}

func (w *journalWriter) write(t *rowsText) error {
	if _, err := w.Out.Write(t.text); err != nil {
		return w.Named(err)
	}
	w.rows += t.rows
	return nil
}

// EncodeRecords implements item.RecordEncoding.
func (t *rowsText) EncodeRecords(_ *row.Schema, records [][]row.Value) (err error) {
	t.text, t.rows = t.text[:0], int64(len(records))
	for _, record := range records {
		for i, c := range t.columns {
			if t.text, err = c.append(t.text, record[i]); err != nil {
				return exception.InvalidItem("parquet", exception.ClassInvalidItem, err)
			}
		}
	}
	return nil
}

func (w *journalWriter) Position() (item.Position, error) {
	return json.Marshal(filePosition{w.Out.Position(), w.rows})
}
