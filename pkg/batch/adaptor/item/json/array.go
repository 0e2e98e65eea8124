package json

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// readerConfig configures the reader `json`.
type readerConfig struct {
	Path        string                     `key:"path" main:"true" path:"std" required:"true" doc:"The file to read; - is the standard input."`
	Item        item.Type                  `key:"item" required:"true" doc:"The type of the items: fields are matched by key or path, unknown decides about other keys, a missing key is null."`
	Items       string                     `key:"items" doc:"The path of the array in the top-level object: features, or data.features; a key with a dot in brackets and quotes. Without it the file is the array."`
	Explode     string                     `key:"explode" doc:"The path of an array in each element: each of its elements becomes an item, a copy of the outer element with the inner one in place of the array, so that fields outside the array are repeated. If the array is missing, null or empty, there is no item."`
	Encoding    filestream.EncodingName    `key:"encoding" default:"utf-8" doc:"The text's encoding. A byte order mark is recognised by itself. Bytes that the encoding does not have make the item invalid."`
	Compression filestream.ReadCompression `key:"compression" default:"auto" doc:"Decompress the file; auto goes by the suffix: .gz, .zst, .bz2 or .xz. A zip archive is read with zip, or with member."`
	Member      string                     `key:"member" doc:"Which file of a zip archive is read: its name, or a pattern with *, ? and [a-z] that one file of it has; without a / folders do not count. Without it the archive must have one file."`
	Unknown     string                     `key:"unknown" default:"ignore" enum:"ignore,warn,error" doc:"How to treat a key that the item type does not have, at any depth that its paths pass through: ignore; warn, which stores a warning with the step, once for each key (at most 20 keys); or error, which fails the step at the first such key and names its line. For rows, not for Go structs."`
	MaxLine     registry.Size              `key:"max_line" default:"16MB" doc:"The longest element; a longer one fails the step."`
}

// Validate reports an invalid value of a key.
func (c *readerConfig) Validate() error {
	if _, err := itemsOf(c.Items); err != nil {
		return err
	}
	return errors.Join(checkReading(c.Explode, c.MaxLine), checkMember(c.Member, c.Compression))
}

func itemsOf(items string) ([]string, error) {
	if items == "" {
		return nil, nil
	}
	keys, err := jsontext.Keys(items)
	if err != nil {
		return nil, &registry.ConfigError{Key: "items", Err: err}
	}
	return keys, nil
}

func arrayComponents() []registry.Component {
	return []registry.Component{
		{
			Kind: registry.KindReader, Name: "json",
			Summary: "Reads the elements of a JSON array.",
			Doc: `The array is the whole file, or the value of a key in the top-level object. An element
that does not fit the item type is an invalid item, identified by path, line and its number in
the array (meta.index, from 1); so is one that
is not valid UTF-8, has a lone surrogate, or an object with a key twice. A file that
is not JSON, ends early, or has more after the document fails the step and names line
and offset, because there is no safe place to continue. The rest after the array is read when
its last element was.` + aboutReading,
			Example: `job: load
flow:
- step: load
  chunk:
    reader: {json: {path: in.json, items: flights, item: {date: string, delay: int}}}
    writer: {csv: out/flights.csv}`,
			Config: reflect.TypeFor[readerConfig](),
			Types:  func(cfg any, _ item.Type) (item.Type, error) { return itemOf(cfg.(*readerConfig).Item) },
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return newArrayReader(*cfg.(*readerConfig), b.Out)
			},
		},
		writer(registry.Component{Name: "json", Summary: "Writes a JSON array.", Example: `job: convert
flow:
- step: convert
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {json: {path: out/items.json, keys: {id: id, who.name: name}}}`}, newArrayWriter),
	}
}

// newArrayReader returns a reader of the elements of an array.
func newArrayReader(cfg readerConfig, itemType item.Type) (item.Reader, error) {
	keys, err := itemsOf(cfg.Items)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	file := jsonfile.Config{Name: "json", Path: cfg.Path, Compression: cfg.Compression, Member: cfg.Member, Encoding: cfg.Encoding, MaxLine: int64(cfg.MaxLine), Unknown: cfg.Unknown, Explode: cfg.Explode}
	return newReader(file, itemType, func(c jsonfile.Config) *jsonfile.Reader { return jsonfile.NewArray(c, keys) })
}

// newArrayWriter returns a writer of an array. The file belongs to b.Attempt (rule C15b).
func newArrayWriter(cfg writerConfig, b registry.BuildContext) (item.Writer, error) {
	if cfg.Append {
		return nil, fmt.Errorf("json: %w", errAppend())
	}
	out, err := jsonfile.NewArrayWriter(fileOf(cfg), b)
	if err != nil {
		return nil, err
	}
	return newWriter(cfg, b, out)
}
