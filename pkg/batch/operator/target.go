package operator

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Target is where a writer writes to.
type Target struct {
	Step   string `json:"step"`
	Writer string `json:"writer"` // the component, such as table or csv
	// Target is the value of the main field of the writer's config, after everything in
	// it was bound: a table, a file.
	Target string `json:"target"`
	// Database is its name, where the writer has one.
	Database string `json:"database,omitempty"`
}

// watched returns the registry of a run: where the caller wants to hear of targets, its
// writers report them when they are made.
func (s *Service) watched(hooks Hooks) (*core.Registry, error) {
	if hooks.OnTarget == nil {
		return s.config.Registry, nil
	}
	return watch(s.config.Registry, hooks.OnTarget)
}

func watch(r *core.Registry, found func(Target)) (*core.Registry, error) {
	var factories []core.Factory
	for _, c := range r.Components() {
		f, ok := r.Factory(c.Kind, c.Name)
		if !ok {
			continue
		}
		if f.Kind == core.KindWriter {
			f.New = reporting(f, found)
		}
		factories = append(factories, f)
	}
	return r.WithFactories(factories)
}

func reporting(f core.Factory, found func(Target)) func(context.Context, any, core.Use) (any, error) {
	return func(ctx context.Context, cfg any, use core.Use) (any, error) {
		made, err := f.New(ctx, cfg, use)
		if err != nil {
			return made, err
		}
		if t, ok := targetOf(f.Name, cfg, use); ok {
			found(t)
		}
		return made, nil
	}
}

// targetOf reads the config of a writer: the field tagged `main` is its target.
func targetOf(writer string, cfg any, use core.Use) (Target, bool) {
	v := reflect.Indirect(reflect.ValueOf(cfg))
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return Target{}, false
	}
	t := Target{Step: use.Step, Writer: writer}
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		if f.Kind() != reflect.String {
			continue
		}
		if tag.Get("main") == "true" {
			t.Target = f.String()
		}
		if tag.Get("key") == "database" {
			if t.Database = use.DatabaseOr(f.String()); t.Database == "" {
				t.Database = tx.Default
			}
		}
	}
	return t, t.Target != ""
}

// targets are those of one run, for a check of the run itself.
type targets struct {
	mu   sync.Mutex
	list []Target
	next func(Target) // may be nil
}

func (t *targets) add(found Target) {
	t.mu.Lock()
	if !slices.Contains(t.list, found) {
		t.list = append(t.list, found)
	}
	t.mu.Unlock()
	if t.next != nil {
		t.next(found)
	}
}

func (t *targets) all() []Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// keepFiles refuses a redrive whose file would take the place of another one: it
// would hold the redriven items only.
func (t *targets) keepFiles(run *core.StepRun, parts chunk.Parts) error {
	if len(run.Step.Position) > 0 {
		return nil // it goes on with a file of its own
	}
	files := slices.ContainsFunc(parts.Writers, func(w core.Writer) bool {
		_, ok := w.Component().(core.Finisher)
		return ok
	})
	for _, target := range t.all() {
		if info, err := os.Stat(target.Target); files && target.Database == "" && err == nil && info.Mode().IsRegular() {
			return fmt.Errorf("writer %s: %s is there already, and a redrive would replace it by a file of the redriven items: name another file with a parameter, or move it away",
				target.Writer, target.Target)
		}
	}
	return nil
}
