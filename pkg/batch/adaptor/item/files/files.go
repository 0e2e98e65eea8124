// Package files is the reader `files`: it reads the files that a pattern matches, one after
// the other, each by another reader.
//
// It imports core with its folders and internal/filestream.
package files

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The orders of files.
const (
	byName     = "name"
	byModified = "modified"
)

// Config is the configuration of `files`.
type Config struct {
	Glob     string          `key:"glob" path:"true" required:"true" doc:"The pattern: * is any run of characters but /, ? one character, [a-z] one of a range; a backslash takes the character behind it as it is."`
	Reader   registry.Nested `key:"reader" kind:"reader" given:"path" required:"true" doc:"The reader of each file, without its path."`
	Order    string          `key:"order" default:"name" enum:"name,modified" doc:"name, by the whole path; modified, the file first that was changed first, and by name where that is the same."`
	Required bool            `key:"required" default:"false" doc:"Whether the step fails when no file matches; else it has nothing to do, and completes."`
}

// Validate checks the pattern.
func (c *Config) Validate() error {
	if err := filestream.CheckPattern(c.Glob); err != nil {
		return &registry.ConfigError{Key: "glob", Err: err}
	}
	return nil
}

// ListsFiles implements registry.FileLister.
func (c *Config) ListsFiles() {}

// Components describes `files`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "files", Config: reflect.TypeFor[Config](),
		Summary: "Reads the files that a pattern matches, one after the other.",
		Doc: `The files are those that are there when the step starts for the first time. A restart keeps to that
list: files that have come since are not read, and one that has changed or gone since is refused, before
anything is read. (` + "`--accept-changes`" + ` goes on with changed ones, as far as their reader can; one that
is still to be read must be there.) The list is kept with the step, compressed, up to 8 MB: some hundred thousand
files. To read several at once, or more of them, make partitions of them: ` + "`partition: {by: {files: GLOB}}`" + `.

` + "`meta.path`" + ` is the file of an item, and ` + "`meta.line`" + ` its line there: ` + "`map: {source: meta.path}`" + `. Folders
do not match.`,
		Example: `job: load
flow:
- step: load
  chunk:
    reader: {files: {glob: in/*.csv, order: modified, reader: {csv: {item: {id: int, name: string}}}}}
    processor: {map: {source: meta.path}}
    writer: {table: {name: customer, key: [id], create: true}}`,
		Types: func(cfg any, _ item.Type) (item.Type, error) {
			return cfg.(*Config).Reader.Types(nil)
		},
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			return New(ctx, *cfg.(*Config), b)
		},
	}}
}

// New returns a reader of files.
func New(ctx context.Context, cfg Config, b registry.BuildContext) (item.Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &reader{config: cfg, open: func(ctx context.Context, path string) (item.Reader, error) {
		nested, err := cfg.Reader.With("path", path)
		if err != nil {
			return nil, err
		}
		made, _, err := registry.MakeNested[item.Reader](ctx, nested, b, nil)
		return made, err
	}}
	if b.StepContext != nil {
		r.context = b.StepContext
	}
	var err error
	if r.none, err = r.open(ctx, cfg.Glob); err != nil {
		return nil, err
	}
	if _, ok := r.none.Component().(item.Positioner); !ok {
		return nil, &registry.ConfigError{Key: "reader", Err: fmt.Errorf("%s has no positions, so that a restart would not find the file", cfg.Reader.Component.Name)}
	}
	return r, nil
}

var errNoContext = errors.New("files: cannot restart: the list of the files is not kept here")
