// Package files has the partitioners `files`, one part for each matching file, and `lines`, parts of one file.
//
// It imports core, core/registry, internal/filestream, internal/partcount, internal/partname, internal/place
// and internal/urlpath.
package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partname"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// config configures the partitioner.
type config struct {
	Glob     string `key:"glob" main:"true" path:"true" required:"true" doc:"The pattern: * matches any run of characters except /, ? one character, [a-z] one of a range; a backslash escapes the next character."`
	Required bool   `key:"required" default:"false" doc:"Whether the step fails if no file matches; otherwise it has nothing to do and completes."`
}

// Validate checks the pattern.
func (c *config) Validate() error {
	err := filestream.CheckPattern(c.Glob)
	if err != nil {
		return &registry.ConfigError{Key: "glob", Err: err}
	}
	return nil
}

// Components describes the partitioner.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindPartitioner, Name: "files", Config: reflect.TypeFor[config](), Parts: types,
		Summary: "makes a partition for each file that matches a pattern",
		Doc: `Every partition has its file as ` + "`part.path`" + `, an absolute path. It is named after the file,
with _ for characters other than letters, digits and _ - . and with its folders if two files
have the same name. The partitions are in the order of their paths.

The list of files is fixed when the step starts for the first time; a restart
keeps it. Folders do not match.`,
		Example: `job: load
flow:
- step: load
  partition: {by: {files: "in/*.csv"}, workers: 4}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer: {table: {name: customer, key: [id], create: true}}`,
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return newPartitioner(*cfg.(*config))
		},
	}, linesComponent()}
}

func types(any) (map[string]reflect.Type, error) {
	return map[string]reflect.Type{"path": reflect.TypeFor[string]()}, nil
}

type partitioner struct{ config config }

// newPartitioner checks config.
func newPartitioner(cfg config) (core.Partitioner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &partitioner{config: cfg}, nil
}

func (p *partitioner) Partition(ctx context.Context, _ *core.View) ([]core.Partition, error) {
	found, err := place.Find(ctx, p.config.Glob)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	if len(found) == 0 && p.config.Required {
		return nil, fmt.Errorf("files: no file matches %s", p.config.Glob)
	}
	paths := make([]string, len(found))
	for i, f := range found {
		paths[i] = f.Path
	}
	names := namesOf(paths)
	parts := make([]core.Partition, len(found))
	for i, f := range found {
		values := core.NewExecutionContext()
		if err := errors.Join(values.Put(filestream.PartPathKey, f.Path), values.Put(filestream.PartMarkKey, f.Mark())); err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		parts[i] = core.Partition{Name: names[i], Index: i, Context: values}
	}
	return parts, nil
}

// the file's name, with as few of its folders as needed if two are the same
func namesOf(paths []string) []string {
	names := make([]string, len(paths))
	count := map[string]int{}
	for i, path := range paths {
		names[i] = filepath.Base(path)
		count[names[i]]++
	}
	for depth := 2; slices.ContainsFunc(names, func(n string) bool { return count[n] > 1 }) && depth <= maxFolders; depth++ {
		again := map[string]int{}
		for i, path := range paths {
			if count[names[i]] > 1 {
				names[i] = lastParts(path, depth)
			}
			again[names[i]]++
		}
		count = again
	}
	return partname.Unique(names)
}

const maxFolders = 8

func lastParts(path string, n int) string {
	parts := strings.Split(strings.TrimPrefix(filepath.ToSlash(path), "/"), "/")
	return strings.Join(parts[max(0, len(parts)-n):], "/")
}
