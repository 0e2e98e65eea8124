package cli

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// targets remembers where the writers of an execution write to, so that the
// summary can name tables and files: a newcomer looks for his rows.
type targets struct {
	mu   sync.Mutex
	list []target
}

// target is what a writer was told to write to: the value of the main field of
// its config, after everything in it was bound.
type target struct {
	Step   string `json:"step"`
	Writer string `json:"writer"` // the component, such as table or csv
	Target string `json:"target"`
	// Database is its name, where the writer has one.
	Database string `json:"database,omitempty"`
}

// watch returns a registry whose writers are noted when they are made.
func (t *targets) watch(r *registry.Registry) *registry.Registry {
	return r.Map(func(c registry.Component) registry.Component {
		if c.Kind == registry.KindWriter && c.New != nil {
			c.New = t.noting(c.Name, c.New)
		}
		return c
	})
}

type newFunc = func(context.Context, any, registry.BuildContext) (any, error)

func (t *targets) noting(writer string, make newFunc) newFunc {
	return func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
		made, err := make(ctx, cfg, b)
		if err == nil {
			t.note(writer, cfg, b)
		}
		return made, err
	}
}

func (t *targets) note(writer string, cfg any, use registry.BuildContext) {
	v := reflect.Indirect(reflect.ValueOf(cfg))
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return
	}
	found := target{Step: use.Step, Writer: writer}
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		if f.Kind() != reflect.String {
			continue
		}
		if tag.Get("main") == "true" {
			found.Target = f.String()
		}
		if tag.Get("key") == "database" {
			if found.Database = f.String(); found.Database == "" {
				found.Database = use.Database
			}
			if found.Database == "" {
				found.Database = tx.Default
			}
		}
	}
	if found.Target == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.list, found) {
		t.list = append(t.list, found)
	}
}

func (t *targets) all() []target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// targetText is "load: table strikes in sqlite /data/surfin.db", a line each.
func (p *program) targetText(list []target) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.Step + ": " + t.Writer + " " + t.Target)
		if t.Database != "" {
			b.WriteString(" in " + p.databaseText(t.Database))
		}
		b.WriteString("\n")
	}
	return b.String()
}
