package check

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/itemtype"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// declareTypes makes the item types of the file.
func (l *checker) declareTypes() {
	l.types = itemtype.Types{Named: map[string]item.Type{}, Reg: l.reg, Zone: l.file.Clock.Zone}
	l.file.Types = &l.types
	for _, e := range l.file.Model.Types {
		l.types.Order = append(l.types.Order, e.Name)
		l.types.Named[e.Name] = nil
		if !language.Identifier.MatchString(e.Name) {
			l.problems.Add(e.Key, fmt.Sprintf("the type name %q is no identifier", e.Name), language.IdentifierHint)
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
