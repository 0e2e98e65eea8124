package jobfile

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Used is a component of a step, as known before the step starts.
type Used struct {
	Step      string
	Kind      registry.Kind
	Component string
	// Target is the text of its main key; empty if none or known later.
	Target   string
	Written  string
	File     bool
	Database string
	// Columns are a writer's columns, in order; nil if only the data shows them.
	Columns []string
	// Needs are the values known only when the step starts.
	Needs []string
}

// Uses returns the components of all steps, in order, with their configs for the parameters.
func (f *File) Uses(params core.Parameters) []Used {
	var list []Used
	for _, s := range f.def.Steps {
		for _, u := range tree.WithNested(s.Components()...) {
			list = append(list, f.used(s.Name, u, params))
		}
	}
	return list
}

func (f *File) used(step string, u *tree.ComponentUse, params core.Parameters) Used {
	found := Used{Step: step, Kind: u.Kind, Component: u.Component.Name}
	secret := false
	for _, late := range u.Late {
		for _, h := range late.Holes {
			for _, name := range h.Prog.Vars() {
				secret = secret || strings.HasPrefix(name, "secret.")
				if late.AtStep && !slices.Contains(found.Needs, name) && template.NeedsStep(h.Prog) {
					found.Needs = append(found.Needs, name)
				}
			}
		}
	}
	slices.Sort(found.Needs)
	if u.Kind == registry.KindWriter && u.In != nil {
		found.Columns = columns(u.In.Schema(), nil)
	}
	v := reflect.Indirect(reflect.ValueOf(bind.Config(f.def, u, bind.Launch(f.def, params), f.def.Doc.NewCollector())))
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return found
	}
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		switch {
		case tag.Get("main") == "true" && field.Kind() == reflect.String && !secret: // a secret is not shown
			found.Target = field.String()
			found.File = (tag.Get("path") == "true" || tag.Get("path") == "std") && found.Target != core.StdPath
			if at := tree.ValueOf(u.Node, yamlfile.Field{Key: tag.Get("key"), Main: true}); found.Target == "" && u.Late[at] != nil {
				found.Written = at.Text
			}
		case tag.Get("key") == "database" && field.Kind() == reflect.String:
			if found.Database = field.String(); found.Database == "" {
				found.Database = f.Database()
			}
		case tag.Get("key") == "columns" && u.Kind == registry.KindWriter && u.In != nil:
			if named, ok := field.Interface().(map[string]string); ok && len(named) > 0 {
				found.Columns = columns(u.In.Schema(), named)
			}
		}
	}
	return found
}

func columns(schema *row.Schema, named map[string]string) []string {
	if schema == nil || schema.IsOpen() {
		return nil
	}
	if named == nil {
		return schema.Names()
	}
	list := slices.Sorted(maps.Keys(named))
	slices.SortStableFunc(list, func(a, b string) int { return schema.Index(named[a]) - schema.Index(named[b]) })
	return list
}
