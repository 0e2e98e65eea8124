// Package jsonl reads and writes files with one JSON value per line: the
// components `jsonl` of a job file. Values become items through core.ItemType.
package jsonl

import (
	"context"
	"errors"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// ReaderConfig configures the jsonl reader.
type ReaderConfig struct {
	Path        string        `key:"path" main:"true" path:"true" required:"true" doc:"The file to read."`
	Item        core.ItemType `key:"item" required:"true" doc:"The type of the items: fields are found by key or path, other keys are ignored, an absent key is a null."`
	Compression string        `key:"compression" default:"auto" enum:"auto,none,gzip" doc:"Decompress the file; auto goes by the suffix .gz."`
	MaxLine     registry.Size `key:"max_line" default:"16MB" doc:"The longest line; a longer one is an invalid item."`
}

// DefaultMaxLine is the longest line where MaxLine is 0.
const DefaultMaxLine registry.Size = 16 << 20

// Validate reports a key whose value means nothing.
func (c *ReaderConfig) Validate() error {
	if c.MaxLine < 0 {
		return &registry.ConfigError{Key: "max_line", Err: errors.New("it is negative")}
	}
	return nil
}

// WriterConfig configures the jsonl writer.
type WriterConfig struct {
	Path        string `key:"path" main:"true" path:"true" output:"true" required:"true" doc:"The file to write. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Compression string `key:"compression" default:"auto" enum:"auto,none,gzip" doc:"Compress the file, one gzip member per chunk; auto goes by the suffix .gz."`
}

// Components describes the reader and the writer.
func Components() []registry.Component {
	return []registry.Component{
		{
			Kind: registry.KindReader, Name: "jsonl",
			Summary: "Reads a file with one JSON value per line.",
			Doc: `Empty lines are ignored. A line that is no JSON, or does not fit the item type, is an
invalid item, named by path:line; so is one that is not valid UTF-8, has a lone
surrogate, or an object with a key twice. Reading goes on at the next line.

A field whose key no object of the file has is an error before anything is read, as a
missing column of csv is, unless the field is optional. To find that out the file is
read ahead up to the first object with the key, mostly the first one of all.

A plain file restarts by a seek; a compressed one is read again from its start up
to the position. A file that changed since the last attempt is refused.`,
			Example: "jsonl: {path: in.jsonl, item: {id: int, name: string null}}",
			Config:  reflect.TypeFor[ReaderConfig](),
			Types: func(cfg any, _ core.ItemType) (core.ItemType, error) {
				return itemOf(cfg.(*ReaderConfig).Item)
			},
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return NewReader(*cfg.(*ReaderConfig), b.Out)
			},
		},
		{
			Kind: registry.KindWriter, Name: "jsonl",
			Summary: "Writes a file with one JSON value per line.",
			Doc:     "The file is in view only when the step is complete. Each chunk costs one fsync.",
			Example: "jsonl: out/items.jsonl",
			Config:  reflect.TypeFor[WriterConfig](),
			Types:   func(_ any, in core.ItemType) (core.ItemType, error) { return in, nil },
			New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
				return NewWriter(*cfg.(*WriterConfig), b)
			},
		},
	}
}

// itemOf refuses item types that JSON cannot fill: the keys of an object are not
// known before it is read, so an open schema has no columns.
func itemOf(item core.ItemType) (core.ItemType, error) {
	switch {
	case item == nil:
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("it is missing: JSON objects have no header that would name the fields")}
	case item.Schema() != nil && item.Schema().IsOpen():
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("its fields must be named: JSON objects have no header")}
	}
	if err := core.CheckDocumentKeys(item); err != nil {
		return nil, &registry.ConfigError{Key: "item", Err: err}
	}
	return item, nil
}
