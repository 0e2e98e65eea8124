package check

import (
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/itemtype"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type checker struct {
	file     *tree.File
	problems *yamlfile.Collector
	reg      *registry.Registry
	types    itemtype.Types
	now      func() time.Time
	parents  []string
	lenient  bool
}

func (l *checker) checkAtLeastOne(n *yamlfile.Node, key string, x *int) {
	if at := n.Get(key); at != nil && x != nil && *x < 1 {
		l.problems.Add(at, key+" must be at least 1", "")
	}
}

func (l *checker) checkPositive(n *yamlfile.Node, key string, d *time.Duration) {
	if d != nil && *d <= 0 {
		l.problems.Add(n.Get(key), key+" must be more than 0", "leave it out for none")
	}
}

func (l *checker) declareTypes() {
	l.types = itemtype.Types{Named: map[string]item.Type{}, Reg: l.reg, Zone: l.file.Clock.Zone}
	l.file.Types = &l.types
	for _, e := range l.file.Model.Types {
		l.types.Order = append(l.types.Order, e.Name)
		l.types.Named[e.Name] = nil
		if !language.Identifier.MatchString(e.Name) {
			l.problems.Add(e.Key, fmt.Sprintf("the type name %q is not an identifier", e.Name), language.IdentifierHint)
		}
		if _, taken := l.reg.Item(e.Name); taken {
			l.problems.Add(e.Key, fmt.Sprintf("the type name %q is taken by a Go type of this application", e.Name), "")
			continue
		}
		if schema, ok := itemtype.RowSchema(l.problems, e.Key, l.file.Clock.Zone, yamlfile.OrderedMap[language.Field](e.Value)); ok {
			l.types.Named[e.Name] = item.RowOf(e.Name, schema)
		}
	}
}
