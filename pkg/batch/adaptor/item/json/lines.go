package json

import (
	"context"
	"errors"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// linesReaderConfig configures the reader `jsonl`.
type linesReaderConfig struct {
	Path        string                     `key:"path" main:"true" path:"std" required:"true" doc:"The file to read; - is the standard input."`
	Item        item.Type                  `key:"item" required:"true" doc:"The type of the items: fields are matched by key or path, unknown decides about other keys, a missing key is null."`
	Explode     string                     `key:"explode" doc:"The path of an array in each line: each of its elements becomes an item, a copy of the line with the element in place of the array, so that fields outside the array are repeated. If the array is missing, null or empty, there is no item."`
	Encoding    filestream.EncodingName    `key:"encoding" default:"utf-8" doc:"The text's encoding. A byte order mark is recognised by itself. Bytes that the encoding does not have make the item invalid."`
	Compression filestream.ReadCompression `key:"compression" default:"auto" doc:"Decompress the file; auto goes by the suffix: .gz, .zst, .bz2 or .xz. A zip archive is read with zip, or with member."`
	Member      string                     `key:"member" doc:"Which file of a zip archive is read: its name, or a pattern with *, ? and [a-z] that one file of it has; without a / folders do not count. Without it the archive must have one file."`
	Unknown     string                     `key:"unknown" default:"ignore" enum:"ignore,warn,error" doc:"How to treat a key that the item type does not have, at any depth that its paths pass through: ignore; warn, which stores a warning with the step, once for each key (at most 20 keys); or error, which fails the step at the first such key and names its line. For rows, not for Go structs."`
	MaxLine     registry.Size              `key:"max_line" default:"16MB" doc:"The longest line; a longer one is an invalid item."`
}

// Validate reports an invalid value of a key.
func (c *linesReaderConfig) Validate() error {
	return errors.Join(checkReading(c.Explode, c.MaxLine), checkMember(c.Member, c.Compression))
}

// CannotDivide implements trait.Divisible.
func (c *linesReaderConfig) CannotDivide() error {
	return filestream.CheckDivisible(c.Path, c.Member, c.Compression)
}

func linesComponents() []registry.Component {
	return []registry.Component{
		{
			Kind: registry.KindReader, Name: "jsonl",
			Summary: "Reads a file with one JSON value per line.",
			Doc: `Empty lines are ignored. A line that is not JSON, or does not fit the item type, is an
invalid item, identified by path:line; so is one that is not valid UTF-8, has a lone
surrogate, or an object with a key twice. Reading continues at the next line.` + aboutReading,
			Example: `job: load
flow:
- step: load
  chunk:
    reader: {jsonl: {path: in.jsonl, item: {id: int, name: string null}}}
    writer: {table: {name: customer, key: [id], create: true}}`,
			Config: reflect.TypeFor[linesReaderConfig](),
			Types:  func(cfg any, _ item.Type) (item.Type, error) { return itemOf(cfg.(*linesReaderConfig).Item) },
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return newLinesReader(*cfg.(*linesReaderConfig), b.Out)
			},
		},
		writer(registry.Component{Name: "jsonl", Summary: "Writes a file with one JSON value per line.", Example: `job: convert
flow:
- step: convert
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {jsonl: {path: out/items.jsonl, append: true}}`}, newLinesWriter),
	}
}

// newLinesReader returns a reader of lines.
func newLinesReader(cfg linesReaderConfig, itemType item.Type) (item.Reader, error) {
	file := jsonfile.Config{Name: "jsonl", Path: cfg.Path, Compression: cfg.Compression, Member: cfg.Member, Encoding: cfg.Encoding, MaxLine: int64(cfg.MaxLine), Unknown: cfg.Unknown, Explode: cfg.Explode}
	return newReader(file, itemType, jsonfile.NewLines)
}

// newLinesWriter returns a writer of lines. The file belongs to b.Attempt (rule C15b).
func newLinesWriter(cfg writerConfig, b registry.BuildContext) (item.Writer, error) {
	out, err := jsonfile.NewLinesWriter(fileOf(cfg), b)
	if err != nil {
		return nil, err
	}
	return newWriter(cfg, b, out)
}
