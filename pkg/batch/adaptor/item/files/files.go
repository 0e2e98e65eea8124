// Package files is the reader `files`: it reads matching files one after the other, each by another reader.
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

const (
	byName     = "name"
	byModified = "modified"
)

// config is the configuration of `files`.
type config struct {
	Glob     string          `key:"glob" path:"true" required:"true" doc:"The pattern: * matches any run of characters except /, ? one character, [a-z] one of a range; a backslash escapes the next character."`
	Reader   registry.Nested `key:"reader" kind:"reader" given:"path" required:"true" doc:"The reader for each file, without its path."`
	Order    string          `key:"order" default:"name" enum:"name,modified" doc:"name sorts by the whole path; modified sorts by modification time, oldest first, then by name."`
	Required bool            `key:"required" default:"false" doc:"Whether the step fails if no file matches; otherwise it has nothing to do and completes."`
}

// Validate checks the pattern.
func (c *config) Validate() error {
	if err := filestream.CheckPattern(c.Glob); err != nil {
		return &registry.ConfigError{Key: "glob", Err: err}
	}
	return nil
}

// ListsFiles implements trait.FileLister.
func (c *config) ListsFiles() {}

// Components describes `files`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "files", Config: reflect.TypeFor[config](),
		Summary: "Reads the files that a pattern matches, one after the other.",
		Doc: `The list of files is fixed when the step starts for the first time. A restart keeps that
list: files added later are not read, and a file that has changed or disappeared is refused before
anything is read. (` + "`--accept-changes`" + ` continues with changed files, as far as their reader can; a file that
has not been read yet must exist.) The list is stored with the step, compressed, up to 8 MB: some hundred thousand
files. To read several at once, or more files, use partitions: ` + "`partition: {by: {files: GLOB}}`" + `.

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
			return cfg.(*config).Reader.Types(nil)
		},
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newReader(ctx, *cfg.(*config), b)
		},
	}}
}

// newReader returns a reader of files.
func newReader(ctx context.Context, cfg config, b registry.BuildContext) (item.Reader, error) {
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
		return nil, &registry.ConfigError{Key: "reader", Err: fmt.Errorf("%s has no positions, so a restart could not find the file", cfg.Reader.Component.Name)}
	}
	return r, nil
}

var errNoContext = errors.New("files: cannot restart: this execution does not store the list of files")
