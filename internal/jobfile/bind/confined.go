package bind

import (
	"context"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Paths with a client's value must lie below the folders that clients may name (rule SE3).

// Confined returns the values for an execution, with the files that it is confined to.
func (v *Values) Confined(ctx context.Context, c *core.Confinement, of *tree.Step) *Values {
	v.files = confine.Of(ctx, c)
	v.partHeld = v.files != nil && of != nil && of.Partitioner != nil && v.heldIn(of.Partitioner)
	return v
}

func (v *Values) heldIn(u *tree.ComponentUse) bool {
	for _, one := range tree.WithNested(u) {
		for _, late := range one.Late {
			if late != nil && v.Held(late.Holes) {
				return true
			}
		}
	}
	return false
}

// Held reports whether a value of the client took part in any of the expressions.
func (v *Values) Held(holes []template.Hole) bool {
	return slices.ContainsFunc(holes, func(h template.Hole) bool {
		return h.Prog == nil || slices.ContainsFunc(h.Prog.Vars(), func(name string) bool {
			if v.partHeld && name != "part.index" && (name == "part" || strings.HasPrefix(name, "part.")) {
				return true
			}
			return v.files.Holds(name)
		})
	})
}

// confine refuses a client's path that leads out of its folders. A program without a slash is
// looked for in PATH.
func (b *Binding) confine(n *yamlfile.Node, f yamlfile.Field, holes []template.Hole, path string) bool {
	if b.values == nil || b.values.files == nil || !f.Path && !f.Program || path == "" {
		return true
	}
	if f.Program && !strings.Contains(path, "/") {
		return true
	}
	if !b.values.Held(holes) {
		if kind := b.Use.Kind; f.Output || kind == registry.KindWriter || kind == registry.KindTasklet {
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
		b.Collector.Add(n, f.Key+": "+err.Error(), "")
		b.reported = true
		return false
	}
	return true
}
