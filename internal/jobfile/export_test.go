package jobfile

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/compile"
	"github.com/surfin-batch/surfin/internal/jobfile/diff"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Bind does the work of a compiled job's Bind, without compiling.
func Bind(ctx context.Context, f *File, params core.Parameters) error {
	return compile.CheckLaunch(ctx, f.def, nil, params)
}

// StepConfig is the config of a tasklet step as known at load.
func StepConfig(f *File, step string) any {
	for _, s := range f.def.Steps {
		if s.Name == step {
			return s.Tasklet.Cfg
		}
	}
	return nil
}

// MayPrecede reports whether one element may have run when the other is reached.
func MayPrecede(f *File, before, after string) bool {
	var a, b *tree.Element
	f.def.Flow.Walk(func(e *tree.Element) {
		if e.Name == before {
			a = e
		}
		if e.Name == after {
			b = e
		}
	})
	return tree.MayPrecede(a, b)
}

// ParametersAt returns the result of Parameters at a time.
func ParametersAt(f *File, now time.Time) []core.ParameterSpec { return f.def.ParametersAt(now) }

// WithDefaults shows the effective settings of a step: its timeout, transaction, chunk, retry and skip.
func WithDefaults(f *File, step string) string {
	var b strings.Builder
	for _, s := range f.def.Steps {
		if s.Name != step {
			continue
		}
		fmt.Fprintf(&b, "timeout %v, transaction %+v", language.ValueOr0(s.Timeout), f.def.Transaction(s).Attr())
		if s.Model.Chunk != nil {
			fmt.Fprintf(&b, ", size %d, %s, retry %+v, skip %+v", *s.Chunk.Size, s.Chunk.Isolate, *s.Retry, *s.Skip)
		}
	}
	return b.String()
}

// Compare lists the differences for a restart (rules F4, F4a). history holds the newest executions of the
// instance's steps and partitions.
func Compare(before, after *File, params core.Parameters, history map[string]ports.StepHistory) []Change {
	return diff.Compare(before.def, after.def, params, history)
}

// LoadFS is Load of a job file in a file system; see [FS].
func LoadFS(fsys fs.FS, path string, reg *registry.Registry) (*File, error) {
	return FS(fsys, path).Load(reg)
}

// Stored is the job file of an execution from its history, with all files that it names: no file is read.
// name is the name in messages of a job file that was not on the disk. Relative data paths begin at the
// original folders of the files, or at the working directory.
func Stored(d core.Definition, name string) Source { return Source{source.Stored(d, name)} }
