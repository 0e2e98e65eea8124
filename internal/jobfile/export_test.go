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

func Bind(ctx context.Context, f *File, params core.Parameters) error {
	return compile.CheckLaunch(ctx, f.def, nil, params)
}

func StepConfig(f *File, step string) any {
	for _, s := range f.def.Steps {
		if s.Name == step {
			return s.Tasklet.Cfg
		}
	}
	return nil
}

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

func ParametersAt(f *File, now time.Time) []core.ParameterSpec { return f.def.ParametersAt(now) }

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

func LoadFS(fsys fs.FS, path string, reg *registry.Registry) (*File, error) {
	return FS(fsys, path).Load(reg)
}

// Stored is the job file of an execution from its history, with all files that
// it names: no file is read.
func Stored(d core.Definition, name string) Source { return Source{source.Stored(d, name)} }
