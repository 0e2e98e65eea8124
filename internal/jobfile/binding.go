package jobfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// binding is one pass over the config of a component: without values at load, with the launch's values at
// launch, with all values at the start of a step.
type binding struct {
	file      *fileDef
	use       *componentUse
	collector *yamlfile.Collector
	types     *itemTypes
	env       registry.ExpressionEnv
	// scope is set at load, when expressions are compiled.
	scope *names
	// values is set later.
	values *values
	// resolve looks a nested component up; it is set at load.
	resolve func(kind registry.Kind, ref *componentRef) *componentUse
	// lenient overlooks files that are not there.
	lenient    bool
	incomplete bool // something stayed late-bound
	// reported is set after a late-bound value was reported as wrong: other missing values follow from it.
	reported bool
}

// decode makes a config struct. It reports whether all of it is right.
func (b *binding) decode() (cfg any, ok bool) {
	u := b.use
	v := reflect.New(u.component.Config)
	d := &yamlfile.Decoder{Collector: b.collector, Scalar: b.scalar, Meant: meantKey}
	d.Forms = map[reflect.Type]yamlfile.Form{
		reflect.TypeFor[registry.Size]():        b.decodeSize,
		reflect.TypeFor[registry.SQL]():         b.decodeSQL,
		reflect.TypeFor[registry.JSON]():        b.decodeJSON,
		reflect.TypeFor[registry.Expression]():  b.decodeExpression,
		reflect.TypeFor[registry.Expressions](): b.decodeExpressions,
		reflect.TypeFor[registry.Nested]():      b.decodeNested,
		reflect.TypeFor[item.Type]():            b.types.decodeItem,
	}
	if !d.Decode(u.node, u.what, v.Elem()) || b.reported {
		return v.Interface(), false
	}
	if b.incomplete {
		return v.Interface(), true
	}
	if validator, is := v.Interface().(interface{ Validate() error }); is {
		if err := exception.Guard(validator.Validate); err != nil && !(b.lenient && errors.Is(err, fs.ErrNotExist)) {
			u.reportConfig(b.collector, err)
			return v.Interface(), false
		}
	}
	return v.Interface(), true
}

// scalar returns the value of a scalar of the config, as far as it is known.
func (b *binding) scalar(n *yamlfile.Node, f yamlfile.Field, want reflect.Type) (yamlfile.Value, bool) {
	if f.Literal {
		return yamlfile.Value{Text: n.Text}, true
	}
	late, ok := b.lateValueOf(n, f, want)
	switch {
	case !ok:
		return yamlfile.Value{}, false
	case len(late.holes) == 0:
		text := b.path(f, want, late.literal())
		if !b.confine(n, f, nil, text) {
			return yamlfile.Value{}, false
		}
		return b.checkText(n, f, want, text)
	case b.values == nil || late.atStep && !b.values.atStep:
		b.incomplete = true
		return yamlfile.Value{}, false
	}
	value, resolved, err := b.values.render(late, f.Path && want.Kind() == reflect.String)
	if err != nil {
		b.report(n, f, err)
		return yamlfile.Value{}, false
	}
	if want.Kind() != reflect.String {
		return value, true
	}
	text := value.Text
	if value.Typed != nil {
		text = textOf(value.Typed)
	}
	if resolved {
		text = b.file.named(text)
	} else {
		text = b.path(f, want, text)
	}
	if !b.confine(n, f, late.holes, text) {
		return yamlfile.Value{}, false
	}
	return b.checkText(n, f, want, text)
}

// checkText refuses an empty text as a required path, or instead of the key's default.
func (b *binding) checkText(n *yamlfile.Node, f yamlfile.Field, want reflect.Type, text string) (yamlfile.Value, bool) {
	if text == "" && f.Path && f.Required && want.Kind() == reflect.String {
		b.collector.Add(n, f.Key+": the path is empty", "name a file: a relative path begins at the folder of the job file")
		return yamlfile.Value{}, false
	}
	if text == "" && f.Default != "" && !f.Path && f.Enum == nil && f.Type.Kind() == reflect.String {
		b.collector.Add(n, f.Key+": the text is empty", cmp.Or(f.Form, fmt.Sprintf("leave it out for %q", f.Default)))
		return yamlfile.Value{}, false
	}
	return yamlfile.Value{Text: text}, true
}

// path makes the text of a path field relative to the file.
func (b *binding) path(f yamlfile.Field, want reflect.Type, text string) string {
	switch {
	case want.Kind() != reflect.String, f.Std && text == core.StdPath:
	case f.Path:
		return b.file.resolve(text)
	case f.Program && strings.ContainsRune(filepath.ToSlash(text), '/'):
		return b.file.absolute(text) // the process may run in another folder
	}
	return text
}

// lateValueOf returns the compiled text of a scalar; at load it compiles it.
func (b *binding) lateValueOf(n *yamlfile.Node, f yamlfile.Field, want reflect.Type) (*lateValue, bool) {
	if late, ok := b.use.late[n]; ok {
		return late, true
	}
	t, err := parseTemplate(n.Text)
	if err != nil {
		reportTemplate(b.collector, n, f.Key, err)
		b.reported = true
		return nil, false
	}
	late := &lateValue{template: t}
	if b.scope == nil || len(t.holes) == 0 {
		return late, true
	}
	if !b.compile(n, f, want, late) {
		b.reported = true
		return nil, false
	}
	b.use.late[n] = late
	return late, true
}

// compile compiles the expressions of a text and checks their types; a nil want accepts any.
func (b *binding) compile(n *yamlfile.Node, f yamlfile.Field, want reflect.Type, late *lateValue) bool {
	good := true
	for i := range late.holes {
		h := &late.holes[i]
		prog, err := compileHole(b.collector, n, *h, b.scope)
		if err != nil {
			good = false
			continue
		}
		h.prog = prog
		if f.Path && late.whole() {
			b.file.declarePath(h.text)
		}
		late.atStep = late.atStep || needsStep(prog)
		if want == nil {
			continue
		}
		if prog.Nullable() {
			b.collector.AddAt(n, h.offset, fmt.Sprintf("%s: ${%s} may be null", f.Key, h.text), "give it a value for that case: "+h.text+" ?? ...")
			good = false
			continue
		}
		if late.whole() && !fits(prog.Type(), want) {
			b.collector.AddAt(n, h.offset, fmt.Sprintf("%s takes %s, and ${%s} is %s", f.Key, typeName(want), h.text, typeName(prog.Type())), "")
			good = false
		}
	}
	return good
}

func (b *binding) report(n *yamlfile.Node, f yamlfile.Field, err error) {
	b.collector.Add(n, f.Key+": "+err.Error(), "")
}

func (b *binding) decodeSize(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if !d.Expect(n, yamlfile.Scalar, f) {
		return
	}
	value, ok := b.scalar(n, f, reflect.TypeFor[registry.Size]())
	if !ok {
		return
	}
	if value.Typed != nil {
		if err := yamlfile.Set(v, value); err != nil {
			b.report(n, f, err)
		}
		return
	}
	size, err := parseSize(value.Text)
	if err != nil {
		b.report(n, f, err)
		return
	}
	v.SetInt(int64(size))
}

// parseSize reads 512, 64KB, 10MB or 1GB, powers of 1024.
func parseSize(text string) (registry.Size, error) {
	digits, unit := text, int64(1)
	for i, suffix := range []string{"KB", "MB", "GB"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > (1<<63-1)/unit || digits[0] == '+' {
		return 0, fmt.Errorf("%q is not a size (such as 512, 64KB, 10MB, 1GB)", text)
	}
	return registry.Size(n * unit), nil
}

func (b *binding) decodeSQL(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if !d.Expect(n, yamlfile.Scalar, f) {
		return
	}
	late, ok := b.lateValueOf(n, f, nil)
	if !ok {
		return
	}
	if strings.TrimSpace(strings.Join(late.texts, "")) == "" && len(late.holes) == 0 {
		d.Add(n, f.Key+": the statement is empty", "")
		return
	}
	if b.scope != nil && !b.checkSQL(n, f.Key, late) {
		return
	}
	// A statement does not depend on its variables, so it can be validated without them.
	sql := registry.SQL{Parts: late.texts, Args: make([]any, len(late.holes)), At: func(part, offset int) string {
		return b.collector.PositionAt(n, late.scalarOffset(n.Text, part, offset))
	}}
	if b.values == nil || late.atStep && !b.values.atStep {
		v.Set(reflect.ValueOf(sql))
		return
	}
	for i, h := range late.holes {
		arg, err := b.values.eval(h)
		if err != nil {
			b.report(n, f, err)
			return
		}
		sql.Args[i] = arg
	}
	v.Set(reflect.ValueOf(sql))
}

func (b *binding) decodeExpression(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if e, ok := b.expressionOf(d, n, f); ok {
		v.Set(reflect.ValueOf(e))
	}
}

func (b *binding) expressionOf(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (registry.Expression, bool) {
	if !bareExpression(d, n, f) {
		return registry.Expression{}, false
	}
	if b.scope != nil {
		b.use.expressions = append(b.use.expressions, n)
	}
	return registry.Expression{Text: n.Text, Env: b.env}, true
}

func (b *binding) decodeExpressions(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if !d.Expect(n, yamlfile.Map, f) {
		return
	}
	list := registry.Expressions{}
	for _, e := range n.Entries {
		if x, ok := b.expressionOf(d, e.Value, yamlfile.Field{Key: e.Key.Text}); ok && !e.Value.Bad {
			list = append(list, registry.NamedExpression{Name: e.Key.Text, Expression: x})
		}
	}
	v.Set(reflect.ValueOf(list))
}

// decodeJSON makes a JSON value of a tree.
func (b *binding) decodeJSON(_ *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	known := true
	value, err := jsonTree(n, func(n *yamlfile.Node) (any, error) {
		late, ok := b.lateValueOf(n, f, nil)
		if !ok || len(late.holes) > 0 && (b.values == nil || late.atStep && !b.values.atStep) {
			known = false
			return nil, nil
		}
		return payloadScalar(b.values, n, late)
	})
	if err != nil {
		b.report(n, f, err)
		return
	}
	if !known {
		b.incomplete = true
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		b.report(n, f, err)
		return
	}
	v.SetBytes(text)
}
