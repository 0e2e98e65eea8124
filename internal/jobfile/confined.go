package jobfile

import (
	"context"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Paths with a value of an API client in them must lie below the folders that clients may name (rule SE3).
// This file decides whether a client's value took part, when a path gets its values; the confine.Files of the
// context checks the files that components open.

// confined returns the values for an execution, with the files that it is confined to. of is the step of the
// components; nil means no step.
func (v *values) confined(ctx context.Context, c *core.Confinement, of *stepDef) *values {
	v.files = confine.Of(ctx, c)
	v.partHeld = v.files != nil && of != nil && of.partitioner != nil && v.heldIn(of.partitioner)
	return v
}

// heldIn reports whether a value of the client took part in the config of a component.
func (v *values) heldIn(u *componentUse) bool {
	for _, one := range withNested(u) {
		for _, late := range one.late {
			if late != nil && v.held(late.holes) {
				return true
			}
		}
	}
	return false
}

// held reports whether a value of the client took part in any of the expressions.
func (v *values) held(holes []hole) bool {
	return slices.ContainsFunc(holes, func(h hole) bool {
		return h.prog == nil || slices.ContainsFunc(h.prog.Vars(), func(name string) bool {
			if v.partHeld && name != "part.index" && (name == "part" || strings.HasPrefix(name, "part.")) {
				return true
			}
			return v.files.Holds(name)
		})
	})
}

// confine refuses a client's path that leads out of the folders that it may name, and admits a path of the
// job file itself. A program without a slash is looked for in PATH.
func (b *binding) confine(n *yamlfile.Node, f yamlfile.Field, holes []hole, path string) bool {
	if b.values == nil || b.values.files == nil || !f.Path && !f.Program || path == "" {
		return true
	}
	if f.Program && !strings.Contains(path, "/") {
		return true
	}
	if !b.values.held(holes) {
		if kind := b.use.kind; f.Output || kind == registry.KindWriter || kind == registry.KindTasklet {
			b.values.files.Free(path)
		} else {
			b.values.files.FreeToRead(path)
		}
		return true
	}
	b.values.files.Give(path)
	check := b.values.files.Check
	if f.Output {
		check = b.values.files.CheckOutput
	}
	if err := check(path); err != nil {
		b.collector.Add(n, f.Key+": "+err.Error(), "")
		b.reported = true
		return false
	}
	return true
}

// childConfinement returns the confinement of a child job: its parameters are confined if a value of the
// client took part in them.
func (f *fileDef) childConfinement(ctx context.Context, child *childDef, view *core.View) *core.Confinement {
	own := view.Job.Confinement
	if own == nil {
		return nil
	}
	v := f.viewValues(view).confined(ctx, own, nil)
	var given []string
	for _, p := range child.parameters {
		if v.held(p.late.holes) {
			given = append(given, p.spec.Name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return &core.Confinement{Roots: own.Roots, Data: own.Data, Given: given}
}
