package check

import (
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
)

// condition checks a condition; nil if there is none, or if it is wrong.
func (l *scopes) condition(m *language.ConditionText, key string, p location) *model.Condition {
	if m == nil {
		return nil
	}
	prog, err := l.scope(p).Compile(l.problems, m.Node, m.Text, 0, key+": ")
	switch {
	case err != nil:
		return nil // reported
	case prog.Type() != reflect.TypeFor[bool]():
		l.problems.Add(m.Node, fmt.Sprintf("%s takes a bool, and this is %s", key, template.TypeName(prog.Type())), "a comparison such as steps.load.skipped > 10 is one")
		return nil
	case prog.Nullable():
		l.problems.Add(m.Node, key+" may be null", "give it a value for that case: "+m.Text+" ?? false")
		return nil
	}
	return &model.Condition{Text: m.Text, Node: m.Node, Prog: prog, OwnNumbers: p.ownNumbers}
}
