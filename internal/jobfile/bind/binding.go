package bind

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/jobfile/itemtype"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Config decodes a config with values into a fresh struct. It returns nil if the component has none.
func Config(f *tree.File, u *tree.ComponentUse, v *Values, problems *yamlfile.Collector) any {
	if u.Component.Config == nil {
		return nil
	}
	b := &Binding{File: f, Use: u, Collector: problems, Types: f.Types, values: v, Env: v.env(u.Env)}
	cfg, _ := b.Decode()
	return cfg
}

// Binding is one pass over the config of a component: at load, at launch, or at the start of a
// step.
type Binding struct {
	File       *tree.File
	Use        *tree.ComponentUse
	Collector  *yamlfile.Collector
	Types      *itemtype.Types
	Env        registry.ExpressionEnv
	Scope      *template.Names
	values     *Values
	Resolve    func(kind registry.Kind, ref *language.ComponentRef) *tree.ComponentUse
	Lenient    bool
	incomplete bool // something stayed late-bound
	// reported is set after a wrong late-bound value: other missing values follow from it.
	reported bool
}

// Decode makes a config struct and reports whether it is right.
func (b *Binding) Decode() (cfg any, ok bool) {
	u := b.Use
	v := reflect.New(u.Component.Config)
	d := &yamlfile.Decoder{Collector: b.Collector, Scalar: b.scalar, Meant: language.MeantKey}
	d.Forms = map[reflect.Type]yamlfile.Form{
		reflect.TypeFor[registry.Size]():        b.decodeSize,
		reflect.TypeFor[registry.SQL]():         b.decodeSQL,
		reflect.TypeFor[registry.JSON]():        b.decodeJSON,
		reflect.TypeFor[registry.Expression]():  b.decodeExpression,
		reflect.TypeFor[registry.Expressions](): b.decodeExpressions,
		reflect.TypeFor[registry.Nested]():      b.decodeNested,
		reflect.TypeFor[partcount.Number]():     language.DecodeAuto,
		reflect.TypeFor[item.Type]():            b.Types.Decode,
	}
	if !d.Decode(u.Node, u.What, v.Elem()) || b.reported {
		return v.Interface(), false
	}
	if b.incomplete {
		return v.Interface(), true
	}
	if validator, is := v.Interface().(interface{ Validate() error }); is {
		if err := panics.Guard(validator.Validate); err != nil && !(b.Lenient && errors.Is(err, fs.ErrNotExist)) {
			u.ReportConfig(b.Collector, err)
			return v.Interface(), false
		}
	}
	return v.Interface(), true
}

func (b *Binding) scalar(n *yamlfile.Node, f yamlfile.Field, want reflect.Type) (yamlfile.Value, bool) {
	if f.Literal {
		return yamlfile.Value{Text: n.Text}, true
	}
	late, ok := b.lateValueOf(n, f, want)
	switch {
	case !ok:
		return yamlfile.Value{}, false
	case len(late.Holes) == 0:
		if !b.onDisk(n, f, late.Literal()) {
			return yamlfile.Value{}, false
		}
		text := b.path(f, want, late.Literal())
		if !b.confine(n, f, nil, text) {
			return yamlfile.Value{}, false
		}
		return b.checkText(n, f, want, text)
	case b.values == nil || late.AtStep && !b.values.AtStep:
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
		text = template.Text(value.Typed)
	}
	switch {
	case resolved && !urlpath.Is(text):
		text = b.File.Named(text)
	case b.onDisk(n, f, text):
		text = b.path(f, want, text)
	default:
		return yamlfile.Value{}, false
	}
	if !b.confine(n, f, late.Holes, text) {
		return yamlfile.Value{}, false
	}
	return b.checkText(n, f, want, text)
}

func (b *Binding) checkText(n *yamlfile.Node, f yamlfile.Field, want reflect.Type, text string) (yamlfile.Value, bool) {
	if text == "" && f.Path && f.Required && want.Kind() == reflect.String {
		b.Collector.Add(n, f.Key+": the path is empty", "name a file: a relative path begins at the folder of the job file")
		return yamlfile.Value{}, false
	}
	if text == "" && f.Default != "" && !f.Path && f.Enum == nil && f.Type.Kind() == reflect.String {
		b.Collector.Add(n, f.Key+": the text is empty", cmp.Or(f.Form, fmt.Sprintf("leave it out for %q", f.Default)))
		return yamlfile.Value{}, false
	}
	return yamlfile.Value{Text: text}, true
}

// onDisk refuses a URL as a path.
func (b *Binding) onDisk(n *yamlfile.Node, f yamlfile.Field, text string) bool {
	if !f.Path || !strings.Contains(text, "://") {
		return true
	}
	_, err := core.PathText("", text)
	if scheme := urlpath.Scheme(text); err == nil && scheme != "" && !slices.Contains(b.File.Places, scheme) {
		if c, is := contrib.Find(urlpath.Kind, scheme); is {
			b.Collector.AddLacking(n, c.Family, f.Key+": "+c.Lacks(), contrib.Cure(c.Family))
			b.reported = true
			return false
		}
		err = &place.LackingError{Scheme: scheme, Known: b.File.Places}
	}
	if err != nil {
		b.Collector.Add(n, f.Key+": "+err.Error(), "")
		b.reported = true
	}
	return err == nil
}

func (b *Binding) path(f yamlfile.Field, want reflect.Type, text string) string {
	switch {
	case want.Kind() != reflect.String, f.Std && text == core.StdPath:
	case f.Path:
		return b.File.Resolve(text)
	case f.Program && strings.ContainsRune(filepath.ToSlash(text), '/'):
		return b.File.Absolute(text) // the process may run in another folder
	}
	return text
}

func (b *Binding) lateValueOf(n *yamlfile.Node, f yamlfile.Field, want reflect.Type) (*template.LateValue, bool) {
	if late, ok := b.Use.Late[n]; ok {
		return late, true
	}
	t, err := template.Parse(n.Text)
	if err != nil {
		template.Report(b.Collector, n, f.Key, err)
		b.reported = true
		return nil, false
	}
	late := &template.LateValue{Template: t}
	if b.Scope == nil || len(t.Holes) == 0 {
		return late, true
	}
	if !b.compile(n, f, want, late) {
		b.reported = true
		return nil, false
	}
	b.Use.Late[n] = late
	return late, true
}

func (b *Binding) compile(n *yamlfile.Node, f yamlfile.Field, want reflect.Type, late *template.LateValue) bool {
	good := true
	for i := range late.Holes {
		h := &late.Holes[i]
		prog, err := template.CompileHole(b.Collector, n, *h, b.Scope)
		if err != nil {
			good = false
			continue
		}
		h.Prog = prog
		if f.Path && late.Whole() {
			b.File.DeclarePath(h.Text)
		}
		late.AtStep = late.AtStep || template.NeedsStep(prog)
		if want == nil {
			continue
		}
		if prog.Nullable() {
			b.Collector.AddAt(n, h.Offset, fmt.Sprintf("%s: ${%s} may be null", f.Key, h.Text), "give it a value for that case: "+h.Text+" ?? ...")
			good = false
			continue
		}
		if late.Whole() && !template.Fits(prog.Type(), want) {
			b.Collector.AddAt(n, h.Offset, fmt.Sprintf("%s takes %s, and ${%s} is %s", f.Key, template.TypeName(want), h.Text, template.TypeName(prog.Type())), "")
			good = false
		}
	}
	return good
}

func (b *Binding) report(n *yamlfile.Node, f yamlfile.Field, err error) {
	b.Collector.Add(n, f.Key+": "+err.Error(), "")
}

func (b *Binding) decodeSize(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
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

func (b *Binding) decodeSQL(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if !d.Expect(n, yamlfile.Scalar, f) {
		return
	}
	late, ok := b.lateValueOf(n, f, nil)
	if !ok {
		return
	}
	if strings.TrimSpace(strings.Join(late.Texts, "")) == "" && len(late.Holes) == 0 {
		d.Add(n, f.Key+": the statement is empty", "")
		return
	}
	if b.Scope != nil && !b.checkSQL(n, f.Key, late) {
		return
	}
	sql := registry.SQL{Parts: late.Texts, Args: make([]any, len(late.Holes)), At: func(part, offset int) string {
		return b.Collector.PositionAt(n, late.ScalarOffset(n.Text, part, offset))
	}}
	if b.values == nil || late.AtStep && !b.values.AtStep {
		v.Set(reflect.ValueOf(sql))
		return
	}
	for i, h := range late.Holes {
		arg, err := b.values.Eval(h)
		if err != nil {
			b.report(n, f, err)
			return
		}
		sql.Args[i] = arg
	}
	v.Set(reflect.ValueOf(sql))
}

func (b *Binding) decodeExpression(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	if e, ok := b.expressionOf(d, n, f); ok {
		v.Set(reflect.ValueOf(e))
	}
}

func (b *Binding) expressionOf(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field) (registry.Expression, bool) {
	if !language.BareExpression(d, n, f) {
		return registry.Expression{}, false
	}
	if b.Scope != nil {
		b.Use.Expressions = append(b.Use.Expressions, n)
	}
	return registry.Expression{Text: n.Text, Env: b.Env}, true
}

func (b *Binding) decodeExpressions(d *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
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

func (b *Binding) decodeJSON(_ *yamlfile.Decoder, n *yamlfile.Node, f yamlfile.Field, v reflect.Value) {
	known := true
	value, err := JsonTree(n, func(n *yamlfile.Node) (any, error) {
		late, ok := b.lateValueOf(n, f, nil)
		if !ok || len(late.Holes) > 0 && (b.values == nil || late.AtStep && !b.values.AtStep) {
			known = false
			return nil, nil
		}
		return PayloadScalar(b.values, n, late)
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

// The database is not known when a file is loaded, so it reports only mistakes in every dialect.
func (b *Binding) checkSQL(n *yamlfile.Node, key string, late *template.LateValue) bool {
	good := true
	refuse := func(h template.Hole, msg, hint string) {
		b.Collector.AddAt(n, h.Begin, key+": "+msg, hint)
		good = false
	}
	lite, post := sqlscript.Variables(late.Texts, tx.SQLite), sqlscript.Variables(late.Texts, tx.Postgres)
	reported := ""
	for i, h := range late.Holes {
		v := lite[i]
		if v.Place != post[i].Place || v.Text != post[i].Text {
			continue
		}
		switch v.Place {
		case sqlscript.InLiteral:
			if at := fmt.Sprint(v.Offset); at != reported {
				reported = at
				refuse(h, fmt.Sprintf("${%s} is inside of a quoted text, where SQL has no variables", h.Text), "write "+joined(v, late))
			}
		case sqlscript.InName:
			refuse(h, fmt.Sprintf("${%s} is a value, and here SQL takes a name", h.Text), "write the name of the table or column itself: SQL binds values only")
		case sqlscript.InComment:
			refuse(h, fmt.Sprintf("${%s} is in a comment", h.Text), "leave it out; a literal ${ is written $${")
		case sqlscript.Free:
		}
	}
	if len(late.Holes) > 0 && several(late.Texts, tx.SQLite) && several(late.Texts, tx.Postgres) {
		refuse(late.Holes[0], "several statements take no variables", "make it one step for each statement; an `atomic` group runs them in one transaction")
	}
	return good
}

func several(texts []string, dialect tx.Dialect) bool {
	return len(sqlscript.Split(strings.Join(texts, "?"), dialect)) > 1
}

func joined(v sqlscript.Variable, late *template.LateValue) string {
	var parts []string
	for i, text := range v.Literal {
		if text != "" {
			parts = append(parts, "'"+text+"'")
		}
		if i+1 < len(v.Literal) {
			parts = append(parts, "${"+late.Holes[v.First+i].Text+"}")
		}
	}
	return strings.Join(parts, " || ")
}
