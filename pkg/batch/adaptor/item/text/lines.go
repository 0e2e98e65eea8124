package text

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// linesConfig configures the reader `lines`.
type linesConfig struct {
	Path        string                     `key:"path" main:"true" path:"std" required:"true" doc:"The file to read; - is the standard input."`
	Field       string                     `key:"field" default:"line" doc:"The name of the field for the line, a string. With item its only field is used."`
	Item        item.Type                  `key:"item" doc:"The type of the items, with one field, a string; without it the items are rows with the field named by field."`
	Encoding    filestream.EncodingName    `key:"encoding" default:"utf-8" doc:"The text's encoding. A byte order mark is recognised by itself. Bytes that the encoding does not have make the item invalid."`
	Compression filestream.ReadCompression `key:"compression" default:"auto" doc:"Decompress the file; auto goes by the suffix: .gz, .zst, .bz2 or .xz. A zip archive is read with zip, or with member."`
	Member      string                     `key:"member" doc:"Which file of a zip archive is read: its name, or a pattern with *, ? and [a-z] that one file of it has; without a / folders do not count. Without it the archive must have one file."`
	MaxLine     registry.Size              `key:"max_line" default:"1MB" doc:"The longest line; a longer one is an invalid item."`
}

// Validate reports an invalid value of a key.
func (c *linesConfig) Validate() error {
	return errors.Join(append(checkFile(c.Encoding, 0, c.MaxLine), checkMember(c.Member, c.Compression)...)...)
}

// linesWriterConfig configures the writer `lines`.
type linesWriterConfig struct {
	Path        string                      `key:"path" main:"true" path:"std" output:"true" required:"true" doc:"The file to write; - is the standard output. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Append      bool                        `key:"append" default:"false" doc:"Append to the existing file; without it the file is replaced. The part begins as a copy of the file. A last line without a line end gets one."`
	Together    bool                        `key:"together" default:"false" doc:"In a partitioned step: write one file from all parts, in their order. Each part keeps PATH.part.NAME until all parts are complete; then the step joins them and publishes the file. Without partitions it is refused."`
	LineEnd     string                      `key:"line_end" default:"lf" enum:"lf,crlf" doc:"The line ending."`
	Encoding    filestream.EncodingName     `key:"encoding" default:"utf-8" doc:"The text's encoding. A character that it lacks makes the item invalid."`
	Compression filestream.WriteCompression `key:"compression" default:"auto" doc:"Compress the file, one gzip member or zstd frame per chunk; auto goes by the suffix: .gz or .zst."`
}

// Validate reports an invalid value of a key.
func (c *linesWriterConfig) Validate() error { return errors.Join(checkFile(c.Encoding, 0, 0)...) }

func linesComponents() []registry.Component {
	return []registry.Component{
		{
			Kind: registry.KindReader, Name: "lines",
			Summary: "Reads a text file, a line for each item.",
			Doc: `Each line is a row with one string field, empty lines too; with ` + "`item`" + ` an item of that type. A line that is too long, or not valid in
the encoding, is an invalid item, identified by path:line. A plain UTF-8 file restarts by a
seek. A file that changed since the last attempt is refused.`,
			Example: `job: grep
flow:
- step: grep
  chunk:
    reader: {lines: {path: in.log, encoding: windows-1252}}
    processor: {filter: "item.line contains 'ERROR'"}
    writer: {lines: out/errors.log}`,
			Config: reflect.TypeFor[linesConfig](),
			Types:  func(cfg any, _ item.Type) (item.Type, error) { return cfg.(*linesConfig).itemType() },
			New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
				return newLinesReader(*cfg.(*linesConfig))
			},
		},
		{
			Kind: registry.KindWriter, Name: "lines",
			Summary: "Writes a text file, a line for each item.",
			Doc: `The items have one field, like those of the reader lines or of a map with only: true. Its
text is the line; a null is an empty line, and a text with a line end is an invalid item. The
file is published only when the step is complete. Each chunk costs one fsync.

With ` + "`append: true`" + ` the file keeps its content: the step copies it once, writes after the copy, and replaces
the file with both when it is complete. Nothing is lost or doubled if the step is killed, restarted or
frozen. If another program has changed the file meanwhile, the step fails and leaves it as it is (rule C15t).`,
			Example: `job: names
flow:
- step: names
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    processor: {map: {only: true, name: upper(item.name)}}
    writer: {lines: {path: out/names.txt, append: true}}`,
			Config: reflect.TypeFor[linesWriterConfig](),
			Types:  func(_ any, in item.Type) (item.Type, error) { return in, oneField(in) },
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return newLinesWriter(*cfg.(*linesWriterConfig), b)
			},
		},
	}
}

const defaultField = "line"

func (c *linesConfig) itemType() (item.Type, error) {
	if c.Item == nil {
		return lineType(cmp.Or(c.Field, defaultField))
	}
	if c.Field != "" && c.Field != defaultField {
		return nil, &registry.ConfigError{Key: "field", Err: errors.New("it cannot be combined with item, whose field has the line")}
	}
	s := c.Item.Schema()
	if s == nil || s.IsOpen() || s.Len() != 1 || s.Field(0).Kind != row.String {
		return nil, &registry.ConfigError{Key: "item", Err: fmt.Errorf("a line is one text: expected a type with one field, a string, such as {line: string}, but %s has other fields", c.Item.Name())}
	}
	return c.Item, nil
}

func lineType(field string) (item.Type, error) {
	schema, err := row.NewSchema(row.Field{Name: field, Kind: row.String})
	if err != nil {
		return nil, err
	}
	return item.RowOf("", schema), nil
}

func oneField(in item.Type) error {
	if err := named(in, ""); err != nil {
		return errors.Unwrap(err)
	}
	if n := in.Schema().Len(); n != 1 {
		return fmt.Errorf("a line is one field, but the items have %d: %s; put a map with only: true before it", n, in.Schema())
	}
	return nil
}

// newLinesReader returns a reader of lines.
func newLinesReader(cfg linesConfig) (item.Reader, error) {
	err := cfg.Validate()
	var itemType item.Type
	if err == nil {
		itemType, err = cfg.itemType()
	}
	if err != nil {
		return nil, fmt.Errorf("lines: %w", err)
	}
	return itemType.FromRecords(&linesReader{
		file:   file{name: "lines", Confined: filestream.Confined{By: "lines"}, path: cfg.Path, compression: cfg.Compression, member: cfg.Member, encoding: cfg.Encoding, longest: cfg.MaxLine},
		schema: itemType.Schema(),
	})
}

type linesReader struct {
	file
	schema *row.Schema
}

func (r *linesReader) Schema() *row.Schema { return r.schema }

// Open opens the file.
func (r *linesReader) Open(ctx context.Context, at item.Position) error {
	if at = r.Start(at); at == nil {
		return r.open(ctx, nil)
	}
	var pos filePosition
	if err := json.Unmarshal(at, &pos); err != nil {
		return fmt.Errorf("lines: cannot restart: the stored position is unreadable: %w", err)
	}
	return r.open(ctx, &pos)
}

// ReadRecord reads the next line.
func (r *linesReader) ReadRecord(ctx context.Context, dst []row.Value) error {
	text, err := r.next(ctx)
	if err != nil {
		return err
	}
	if !utf8.ValidString(text) {
		return r.invalid(r.notValid())
	}
	dst[0] = row.StringValue(text)
	return nil
}

func (r *linesReader) Position() (item.Position, error) {
	at, err := r.position()
	if err != nil {
		return nil, err
	}
	return json.Marshal(at)
}

// newLinesWriter returns a writer of items with one field. The file belongs to use.Attempt (rule C15b).
func newLinesWriter(cfg linesWriterConfig, use registry.BuildContext) (item.Writer, error) {
	err := cfg.Validate()
	if err == nil {
		err = oneField(use.In)
	}
	if err != nil {
		return nil, fmt.Errorf("lines: %w", err)
	}
	return newOutput(outConfig{
		name: "lines", path: cfg.Path, compression: cfg.Compression, appends: cfg.Append, together: cfg.Together, encoding: cfg.Encoding, lineEnd: cfg.LineEnd,
		put: func(dst []byte, schema *row.Schema, record []row.Value) ([]byte, error) {
			f := schema.Field(0)
			dst, err := appendText(dst, f, record[0])
			if err == nil && bytes.ContainsAny(dst, "\r\n") {
				err = fmt.Errorf("field %s: its text has a line end, but each record is one line", f.Name)
			}
			return dst, err
		},
	}, use)
}
