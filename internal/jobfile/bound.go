package jobfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// bound returns the values that each component of a step takes from outside the definition (rule C15x): all
// keys by which a reader reads, and the target of a writer. It leaves out files, since a reader recognizes
// its file by a fingerprint and a writer copies the part that it committed, and secrets, the clock and the
// execution's number, which differ in each attempt.
func (f *fileDef) bound(view *core.View, uses []*componentUse) ([]chunk.Bound, error) {
	list := make([]chunk.Bound, len(uses))
	for i, u := range uses {
		b := boundValues{file: f, values: f.viewValues(view), counts: anyKey}
		b.values.vars["job"].(map[string]any)["execution"] = int64(0)
		switch u.kind {
		case registry.KindReader:
		case registry.KindWriter:
			b.counts = isTarget
		default:
			continue
		}
		if b.use(u); b.err != nil {
			return nil, fmt.Errorf("%s: %w", u.what, b.err)
		}
		if list[i].Of = u.what; len(b.names) > 0 {
			sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", view.Job.InstanceID, b.text.String()))
			list[i].Hash, list[i].Names = hex.EncodeToString(sum[:8]), b.names
		}
	}
	return list, nil
}

// boundValues collects the values of one component and of its nested ones.
type boundValues struct {
	file   *fileDef
	values *values
	counts func(yamlfile.Field) bool
	text   strings.Builder
	names  []string
	err    error
}

func (b *boundValues) use(u *componentUse) {
	if u.component.Config == nil {
		return
	}
	for _, field := range yamlfile.FieldsOf(u.component.Config).Fields {
		n := u.node.Get(field.Key)
		if field.Main && u.node.Kind != yamlfile.Map {
			n = u.node
		}
		if n != nil && b.counts(field) && !field.Path && !isTuning(field) {
			b.node(u, n)
		}
	}
	for _, inner := range u.inner {
		b.use(inner)
	}
}

// isTuning reports whether a key says how a reader reads, but not which data: how much at once, how fast, and
// with which headers, which may hold a token that changes every day.
func isTuning(f yamlfile.Field) bool {
	switch f.Type {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[registry.Size]():
		return true
	}
	return f.Key == "fetch" || f.Key == "rate" || f.Key == "headers"
}

// node collects the values in a node, without nested components.
func (b *boundValues) node(u *componentUse, n *yamlfile.Node) {
	if _, nested := u.nested[n]; nested {
		return
	}
	if late := u.late[n]; late != nil {
		for _, h := range late.holes {
			b.hole(n, h)
		}
	}
	if slices.Contains(u.expressions, n) {
		b.expression(n)
	}
	for _, one := range n.Items {
		b.node(u, one)
	}
	for _, entry := range n.Entries {
		b.node(u, entry.Value)
	}
}

func (b *boundValues) hole(n *yamlfile.Node, h hole) {
	if h.prog.UsesClock() || slices.ContainsFunc(h.prog.Vars(), func(path string) bool { return strings.HasPrefix(path, "secret.") }) {
		return
	}
	x, err := b.values.eval(h)
	if err != nil {
		b.err = err
		return
	}
	b.add(b.file.doc.NewCollector().PositionAt(n, h.begin), "${"+h.text+"}", x)
}

// paramOf finds the parameters in an expression over items.
var paramOf = regexp.MustCompile(`\bparams\.(\w+)`)

func (b *boundValues) expression(n *yamlfile.Node) {
	params := b.values.vars["params"].(map[string]any)
	for _, found := range paramOf.FindAllStringSubmatch(n.Text, -1) {
		if x, is := params[found[1]]; is && !slices.Contains(b.values.secrets, found[1]) {
			b.add(b.file.doc.NewCollector().PositionAt(n, 0), found[0], x)
		}
	}
}

func (b *boundValues) add(place, name string, x any) {
	text := textOf(x)
	if rel, err := filepath.Rel(b.file.folder, text); err == nil && filepath.IsAbs(text) && filepath.IsLocal(rel) {
		text = filepath.ToSlash(rel) // the folder of the job may be moved (rule L1a)
	}
	fmt.Fprintf(&b.text, "%s\x00%s\x00", name, text)
	b.names = append(b.names, fmt.Sprintf("%s (%s)", name, place))
}
