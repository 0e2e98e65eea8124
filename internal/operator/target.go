package operator

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Target is the target of a writer.
type Target struct {
	Step   string `json:"step"`
	Writer string `json:"writer"` // the component, such as table or csv
	// Target is the main field's value: a table, a file.
	Target   string `json:"target"`
	Database string `json:"database,omitempty"`
}

func watch(r *registry.Registry, found func(Target)) *registry.Registry {
	return r.Map(func(c registry.Component) registry.Component {
		if c.Kind == registry.KindWriter && c.New != nil {
			c.New = reporting(c.Name, c.New, found)
		}
		return c
	})
}

type newFunc = func(context.Context, any, registry.BuildContext) (any, error)

func reporting(writer string, create newFunc, found func(Target)) newFunc {
	return func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
		made, err := create(ctx, cfg, b)
		if err != nil {
			return made, err
		}
		if t, ok := targetOf(writer, cfg, b); ok {
			found(t)
		}
		return made, nil
	}
}

func targetOf(writer string, cfg any, b registry.BuildContext) (Target, bool) {
	v := reflect.Indirect(reflect.ValueOf(cfg))
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return Target{}, false
	}
	t := Target{Step: b.Step, Writer: writer}
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		if f.Kind() != reflect.String {
			continue
		}
		if tag.Get("main") == "true" {
			t.Target = f.String()
		}
		if tag.Get("key") == "database" {
			t.Database = cmp.Or(f.String(), b.Database, tx.Default)
		}
	}
	return t, t.Target != ""
}

// Targets collects one run's targets. It is safe for concurrent use.
type Targets struct {
	mu    sync.Mutex
	list  []Target
	fresh []Target     // of the step execution with components that are being made
	next  func(Target) // may be nil
}

// Add is a Hooks.OnTarget.
func (t *Targets) Add(found Target) {
	t.mu.Lock()
	t.fresh = append(t.fresh, found)
	if !slices.Contains(t.list, found) {
		t.list = append(t.list, found)
	}
	t.mu.Unlock()
	if t.next != nil {
		t.next(found)
	}
}

// All returns them in the order of creation.
func (t *Targets) All() []Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// The partitions of a redrive run one after the other.
func (t *Targets) watchFiles() func(run *model.StepRun, parts chunk.Parts) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh = nil
	return t.keepFiles
}

// A file that replaces another would hold the redriven items only.
func (t *Targets) keepFiles(run *model.StepRun, parts chunk.Parts) error {
	if len(run.Step.Position) > 0 {
		return nil // it continues with its own file
	}
	files := slices.ContainsFunc(parts.Writers, func(w item.Writer) bool { return itemextra.Publishes(w.Component()) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, target := range t.fresh {
		if info, err := os.Stat(target.Target); files && target.Database == "" && err == nil && info.Mode().IsRegular() {
			return fmt.Errorf("writer %s: %s exists, and a redrive would replace it with the redriven items alone: set another file with a parameter, or move it away",
				target.Writer, target.Target)
		}
	}
	return nil
}
