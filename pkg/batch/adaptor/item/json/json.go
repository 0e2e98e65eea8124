// Package json reads and writes JSON files: the components `json`, an array, and `jsonl`, one value per
// line. A file of any size takes the memory of one value.
//
// It imports core, core/registry, internal/filestream and internal/jsonfile.
package json

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const defaultMaxLine registry.Size = 16 << 20

// writerConfig configures the writers.
type writerConfig struct {
	Path        string                      `key:"path" main:"true" path:"std" output:"true" required:"true" doc:"The file to write; - is the standard output. It is written as PATH.part.NAME, a name of the attempt's own, and renamed when the step is done; what was there is replaced."`
	Append      bool                        `key:"append" default:"false" doc:"Append to the existing file; without it the file is replaced. For jsonl only, since a JSON array has an end. The part begins as a copy of the file. A last line without a line end gets one."`
	Keys        map[string]string           `key:"keys" doc:"Maps keys to fields, and nothing else is written; address.city makes objects, in the order of the fields. Without it each field's key is its name in its source."`
	Raw         []string                    `key:"raw" doc:"Fields whose text is JSON, such as an object that was read into a string; they are written as JSON, not as a string."`
	Encoding    filestream.EncodingName     `key:"encoding" default:"utf-8" doc:"The text's encoding. A character that it lacks makes the item invalid."`
	Compression filestream.WriteCompression `key:"compression" default:"auto" doc:"Compress the file, one gzip member or zstd frame per chunk; auto goes by the suffix: .gz or .zst."`
}

// Components returns the readers and writers `json` and `jsonl`.
func Components() []registry.Component { return slices.Concat(arrayComponents(), linesComponents()) }

const aboutReading = `

If no object of the file has a field's key, that is an error before anything is read, as a
missing column of csv is, unless the field is optional. To check that, the file is
read ahead up to the first object with the key, mostly the first one of all.

With explode, a row is also identified by its number within its element or line
(meta.row, from 1). The stored text of a row that could not be read is the element or line with
that row's element in place of the array: corrected, it is read as this one row again.
A string field takes an object or an array as its JSON text.

A plain file restarts by a seek; a compressed one is read again from its start up
to the position. A file that changed since the last attempt is refused.`

func writer(c registry.Component, make func(writerConfig, registry.BuildContext) (item.Writer, error)) registry.Component {
	c.Kind = registry.KindWriter
	c.Doc = "The file is published only when the step is complete. Each chunk costs one fsync."
	c.Config = reflect.TypeFor[writerConfig]()
	c.Types = func(cfg any, in item.Type) (item.Type, error) {
		w := cfg.(*writerConfig)
		if c.Name == "json" && w.Append {
			return nil, errAppend()
		}
		_, err := newLayout(w, in)
		return in, err
	}
	c.New = func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
		return make(*cfg.(*writerConfig), b)
	}
	return c
}

func errAppend() error {
	return &registry.ConfigError{Key: "append", Err: errors.New("a JSON array has an end, and nothing can follow it: use jsonl, which has one value per line")}
}

func fileOf(cfg writerConfig) jsonfile.WriterConfig {
	return jsonfile.WriterConfig{Path: cfg.Path, Compression: cfg.Compression, Encoding: cfg.Encoding, Append: cfg.Append}
}

func newReader(cfg jsonfile.Config, itemType item.Type, open func(jsonfile.Config) *jsonfile.Reader) (item.Reader, error) {
	itemType, err := itemOf(itemType)
	if err == nil && cfg.Unknown != "" && cfg.Unknown != jsonfile.UnknownIgnore && itemType.GoType() != reflect.TypeFor[item.Row]() {
		err = &registry.ConfigError{Key: "unknown", Err: fmt.Errorf("it is for rows, not for %s, which encoding/json decodes", itemType.Name())}
	}
	if err == nil {
		err = checkReading(cfg.Explode, registry.Size(cfg.MaxLine))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Name, err)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = int64(defaultMaxLine)
	}
	return itemType.FromDocuments(open(cfg))
}

func checkReading(explode string, size registry.Size) error {
	if err := jsontext.CheckName(explode); explode != "" && err != nil {
		return &registry.ConfigError{Key: "explode", Err: err}
	}
	if size < 0 {
		return &registry.ConfigError{Key: "max_line", Err: errors.New("it is negative")}
	}
	return nil
}

func checkMember(member string, compression filestream.ReadCompression) error {
	if err := filestream.CheckMember(member, compression); err != nil {
		return &registry.ConfigError{Key: "member", Err: err}
	}
	return nil
}

// The keys of an object are unknown before it is read, so an open schema has no columns.
func itemOf(itemType item.Type) (item.Type, error) {
	switch {
	case itemType == nil:
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("it is missing: JSON objects have no header that names the fields")}
	case itemType.Schema() != nil && itemType.Schema().IsOpen():
		return nil, &registry.ConfigError{Key: "item", Err: errors.New("its fields must be named: JSON objects have no header")}
	}
	if err := item.CheckDocumentKeys(itemType); err != nil {
		return nil, &registry.ConfigError{Key: "item", Err: err}
	}
	return itemType, nil
}
