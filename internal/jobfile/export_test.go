package jobfile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Bind does the work of a compiled job's Bind, without compiling.
func Bind(ctx context.Context, f *File, params core.Parameters) error {
	return f.def.bind(ctx, nil, params)
}

// StepConfig is the config of a tasklet step as known at load.
func StepConfig(f *File, step string) any {
	for _, s := range f.def.steps {
		if s.name == step {
			return s.tasklet.cfg
		}
	}
	return nil
}

// MayPrecede reports whether one element may have run when the other is reached.
func MayPrecede(f *File, before, after string) bool {
	var a, b *elementDef
	f.def.flow.walk(func(e *elementDef) {
		if e.name == before {
			a = e
		}
		if e.name == after {
			b = e
		}
	})
	return mayPrecede(a, b)
}

// ParametersAt returns the result of Parameters at a time.
func ParametersAt(f *File, now time.Time) []core.ParameterSpec { return f.def.parametersAt(now) }

// WithDefaults shows the effective settings of a step: its timeout, transaction, chunk, retry and skip.
func WithDefaults(f *File, step string) string {
	var b strings.Builder
	for _, s := range f.def.steps {
		if s.name != step {
			continue
		}
		fmt.Fprintf(&b, "timeout %v, transaction %+v", valueOr0(s.timeout), f.def.transaction(s).attr())
		if s.model.Chunk != nil {
			fmt.Fprintf(&b, ", size %d, %s, retry %+v, skip %+v", *s.chunk.Size, s.chunk.Isolate, *s.retry, *s.skip)
		}
	}
	return b.String()
}
