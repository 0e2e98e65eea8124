// Package json reads and writes JSON files: the components `json`, an array, and
// `jsonl`, one value per line. They differ by the framing only. Values become items
// through item.Type. A file of any size takes the memory of one value.
//
// It imports core, core/registry and internal/jsonfile.
package json

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// defaultMaxLine is the longest value where MaxLine is 0.
const defaultMaxLine registry.Size = 16 << 20

// WriterConfig configures the writers.
type WriterConfig struct {
	Path        string `key:"path" main:"true" path:"std" output:"true" required:"true" doc:"The file to write; - is the standard output. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Compression string `key:"compression" default:"auto" enum:"auto,none,gzip" doc:"Compress the file, one gzip member per chunk; auto goes by the suffix .gz."`
}

// Components returns the readers and writers `json` and `jsonl`.
func Components() []registry.Component { return slices.Concat(arrayComponents(), linesComponents()) }

// aboutReading ends the descriptions of both readers.
const aboutReading = `

A field whose key no object of the file has is an error before anything is read, as a
missing column of csv is, unless the field is optional. To find that out the file is
read ahead up to the first object with the key, mostly the first one of all.

A plain file restarts by a seek; a compressed one is read again from its start up
to the position. A file that changed since the last attempt is refused.`

// writer completes the description of a writer.
func writer(c registry.Component, make func(WriterConfig, registry.BuildContext) (item.Writer, error)) registry.Component {
	c.Kind = registry.KindWriter
	c.Doc = "The file is in view only when the step is complete. Each chunk costs one fsync."
	c.Config = reflect.TypeFor[WriterConfig]()
	c.Types = func(_ any, in item.Type) (item.Type, error) { return in, nil }
	c.New = func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
		return make(*cfg.(*WriterConfig), b)
	}
	return c
}

// newReader returns a reader of items whose documents open finds.
func newReader(cfg jsonfile.Config, itemType item.Type, open func(jsonfile.Config) *jsonfile.Reader) (item.Reader, error) {
	itemType, err := itemOf(itemType)
	if err == nil {
		err = checkMaxLine(registry.Size(cfg.MaxLine))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Name, err)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = int64(defaultMaxLine)
	}
	return itemType.FromDocuments(open(cfg))
}

func checkMaxLine(size registry.Size) error {
	if size < 0 {
		return &registry.ConfigError{Key: "max_line", Err: errors.New("it is negative")}
	}
	return nil
}

// itemOf refuses item types that JSON cannot fill: the keys of an object are not
// known before it is read, so an open schema has no columns.
func itemOf(itemType item.Type) (item.Type, error) {
	switch {
	case itemType == nil:
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("it is missing: JSON objects have no header that would name the fields")}
	case itemType.Schema() != nil && itemType.Schema().IsOpen():
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("its fields must be named: JSON objects have no header")}
	}
	if err := item.CheckDocumentKeys(itemType); err != nil {
		return nil, &registry.ConfigError{Key: "item", Err: err}
	}
	return itemType, nil
}
