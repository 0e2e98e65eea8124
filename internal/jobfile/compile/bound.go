package compile

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

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// boundOf returns the outside values of each component of a step (rule C15x). It leaves out files
// (fingerprints and parts protect them), secrets, the clock and the execution's number, which
// differ in each attempt.
func boundOf(f *tree.File, view *core.View, uses []*tree.ComponentUse) ([]chunk.Bound, error) {
	list := make([]chunk.Bound, len(uses))
	for i, u := range uses {
		b := boundValues{file: f, values: bind.View(f, view), counts: tree.AnyKey}
		b.values.Vars["job"].(map[string]any)["execution"] = int64(0)
		switch u.Kind {
		case registry.KindReader:
		case registry.KindWriter:
			b.counts = tree.IsTarget
		default:
			continue
		}
		if b.use(u); b.err != nil {
			return nil, fmt.Errorf("%s: %w", u.What, b.err)
		}
		if list[i].Of = u.What; len(b.names) > 0 {
			sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", view.Job.InstanceID, b.text.String()))
			list[i].Hash, list[i].Names = hex.EncodeToString(sum[:8]), b.names
		}
	}
	return list, nil
}

type boundValues struct {
	file   *tree.File
	values *bind.Values
	counts func(yamlfile.Field) bool
	text   strings.Builder
	names  []string
	err    error
}

func (b *boundValues) use(u *tree.ComponentUse) {
	if u.Component.Config == nil {
		return
	}
	for _, field := range yamlfile.FieldsOf(u.Component.Config).Fields {
		n := tree.ValueOf(u.Node, field)
		if n != nil && b.counts(field) && !field.Path && !isTuning(field) {
			b.node(u, n)
		}
	}
	for _, inner := range u.Inner {
		b.use(inner)
	}
}

// isTuning reports a key that says how a reader reads, not which data; headers may hold a token
// that changes every day.
func isTuning(f yamlfile.Field) bool {
	switch f.Type {
	case reflect.TypeFor[time.Duration](), reflect.TypeFor[registry.Size]():
		return true
	}
	return f.Key == "fetch" || f.Key == "rate" || f.Key == "headers"
}

func (b *boundValues) node(u *tree.ComponentUse, n *yamlfile.Node) {
	if _, nested := u.Nested[n]; nested {
		return
	}
	if late := u.Late[n]; late != nil {
		for _, h := range late.Holes {
			b.hole(n, h)
		}
	}
	if slices.Contains(u.Expressions, n) {
		b.expression(n)
	}
	for _, item := range n.Items {
		b.node(u, item)
	}
	for _, entry := range n.Entries {
		b.node(u, entry.Value)
	}
}

func (b *boundValues) hole(n *yamlfile.Node, h template.Hole) {
	if h.Prog.UsesClock() || slices.ContainsFunc(h.Prog.Vars(), func(path string) bool { return strings.HasPrefix(path, "secret.") }) {
		return
	}
	x, err := b.values.Eval(h)
	if err != nil {
		b.err = err
		return
	}
	b.add(b.file.Doc.NewCollector().PositionAt(n, h.Begin), "${"+h.Text+"}", x)
}

var paramOf = regexp.MustCompile(`\bparams\.(\w+)`)

func (b *boundValues) expression(n *yamlfile.Node) {
	params := b.values.Vars["params"].(map[string]any)
	for _, found := range paramOf.FindAllStringSubmatch(n.Text, -1) {
		if x, is := params[found[1]]; is && !slices.Contains(b.values.Secrets, found[1]) {
			b.add(b.file.Doc.NewCollector().PositionAt(n, 0), found[0], x)
		}
	}
}

func (b *boundValues) add(place, name string, x any) {
	text := template.Text(x)
	if rel, err := filepath.Rel(b.file.Folder, text); err == nil && filepath.IsAbs(text) && filepath.IsLocal(rel) {
		text = filepath.ToSlash(rel) // the folder of the job may be moved (rule L1a)
	}
	fmt.Fprintf(&b.text, "%s\x00%s\x00", name, text)
	b.names = append(b.names, fmt.Sprintf("%s (%s)", name, place))
}
