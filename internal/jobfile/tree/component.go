package tree

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// ComponentUse is one use of a component in the file.
type ComponentUse struct {
	Kind        registry.Kind
	Component   registry.Component
	Ref         *language.ComponentRef
	What        string         // "reader csv", for messages
	Node        *yamlfile.Node // the config; an empty map if there is none
	Late        map[*yamlfile.Node]*template.LateValue
	Cfg         any
	Valid       bool
	In, Out     item.Type
	Nested      map[*yamlfile.Node]*ComponentUse
	Inner       []*ComponentUse
	Given       string
	AtOpen      bool
	Env         registry.ExpressionEnv
	Expressions []*yamlfile.Node
}

// OutputType returns the component's item type. A panic becomes an error, to report the file's
// other mistakes, too.
func (u *ComponentUse) OutputType(in item.Type) (out item.Type, err error) {
	err = panics.Guard(func() (err error) {
		out, err = u.Component.Types(u.Cfg, in)
		return err
	})
	return out, err
}

// Database is the name in the component's `database` key; has reports whether it has such a key.
func (u *ComponentUse) Database() (name string, has bool) {
	if u == nil || u.Component.Config == nil || u.Cfg == nil {
		return "", false
	}
	f, ok := yamlfile.FieldsOf(u.Component.Config).Find("database")
	if !ok || f.Type.Kind() != reflect.String {
		return "", false
	}
	return reflect.ValueOf(u.Cfg).Elem().FieldByIndex(f.Index).String(), true
}

// A writer that refills its target removes the rows once in its step (rule TW4): nothing else of
// the job may write there at the same time.

// Refills describes how the writer refills its target, or is empty if it does not.
func (u *ComponentUse) Refills() string {
	if u == nil || u.Kind != registry.KindWriter || u.Cfg == nil {
		return ""
	}
	if r, ok := u.Cfg.(trait.Refiller); ok {
		return r.Refills()
	}
	return ""
}

// Together reports whether the writer writes one file from all parts of its step (rule C15w).
func (u *ComponentUse) Together() bool { return u.is("together") }

// Appends reports whether the writer keeps the content of its file.
func (u *ComponentUse) Appends() bool { return u.is("append") }

func (u *ComponentUse) is(key string) bool {
	if u == nil || u.Kind != registry.KindWriter || u.Component.Config == nil || u.Cfg == nil {
		return false
	}
	f, ok := yamlfile.FieldsOf(u.Component.Config).Find(key)
	return ok && f.Type.Kind() == reflect.Bool && reflect.ValueOf(u.Cfg).Elem().FieldByIndex(f.Index).Bool()
}

// KeyNode returns the node of a config key, or the component's node if the key is missing.
func (u *ComponentUse) KeyNode(key string) *yamlfile.Node {
	if u.Node.Kind == yamlfile.Map && u.Node.Get(key) != nil {
		return u.Node.KeyOf(key)
	}
	return u.Ref.At
}

// WithNested returns the components with their nested ones, without nil.
func WithNested(uses ...*ComponentUse) []*ComponentUse {
	var list []*ComponentUse
	for _, u := range uses {
		if u != nil {
			list = append(append(list, u), WithNested(u.Inner...)...)
		}
	}
	return list
}

// NestedError is an error of a nested component: it is reported at its own position.
type NestedError struct {
	Use *ComponentUse
	Err error
}

func (e *NestedError) Error() string { return e.Use.What + ": " + e.Err.Error() }

// Condition is a checked bare expression of type bool.
type Condition struct {
	Text       string
	Node       *yamlfile.Node
	Prog       *expression.Program
	OwnNumbers bool
}

// ReportConfig reports config errors one by one, each at its key or position.
func (u *ComponentUse) ReportConfig(c *yamlfile.Collector, err error) {
	var joined interface{ Unwrap() []error }
	if _, single := err.(*registry.ConfigError); !single && errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			u.ReportConfig(c, e)
		}
		return
	}
	var inner *NestedError
	if errors.As(err, &inner) {
		inner.Use.ReportConfig(c, inner.Err)
		return
	}
	at, text := u.Ref.At, u.What+": "+err.Error()
	if direct, is := err.(*registry.ConfigError); is && u.Ref.Node != nil && u.Node.Kind != yamlfile.Map { // the file names no key
		text = u.What + ": " + direct.Err.Error()
	}
	var key *registry.ConfigError
	hint := ""
	if errors.As(err, &key) {
		at, hint = u.Find(key.Key), key.Hint
	}
	var syntax *expression.Error
	if errors.As(err, &syntax) && at.Kind == yamlfile.Scalar {
		c.AddAt(at, syntax.Offset, text, template.ExpressionHint(at, syntax))
		return
	}
	if key != nil && key.At > 0 && at.Kind == yamlfile.Scalar {
		c.AddAt(at, key.At-1, text, hint)
		return
	}
	c.Add(at, text, hint)
}

// Find returns the node of a key of the config.
func (u *ComponentUse) Find(key string) *yamlfile.Node {
	if u.Component.Config != nil && u.Node.Kind == yamlfile.List { // the short form of its main key
		if main, ok := yamlfile.FieldsOf(u.Component.Config).Main(); ok && strings.HasPrefix(key, main.Key+".") {
			return u.Node.Find(strings.TrimPrefix(key, main.Key+"."))
		}
	}
	if u.Component.Config == nil || u.Node.Kind != yamlfile.Map || len(u.Node.Entries) == 0 {
		if u.Ref.Node == nil {
			return u.Ref.At
		}
		return u.Node
	}
	if rest, ok := yamlfile.FieldsOf(u.Component.Config).Rest(); ok {
		key = strings.TrimPrefix(key, rest.Key+".")
	}
	if found := u.Node.Find(key); found != u.Node {
		return found
	}
	return u.Ref.At
}

// A file belongs to its writer alone (rule C15b): checked at load as far as visible, else when a
// step starts or partitions are planned.

// FileUse is a key of a component that names a file.
type FileUse struct {
	Use   *ComponentUse
	field yamlfile.Field
	Node  *yamlfile.Node
}

// Files are the keys that name files to read, or, for a writer, to write (tag `output`).
func (u *ComponentUse) Files() []FileUse {
	if u == nil || u.Component.Config == nil {
		return nil
	}
	var list []FileUse
	for _, f := range yamlfile.FieldsOf(u.Component.Config).Fields {
		if f.Type.Kind() != reflect.String || !f.Path || f.Key == u.Given || u.Kind == registry.KindWriter && !f.Output {
			continue
		}
		at := ValueOf(u.Node, f)
		if at != nil && at.Kind == yamlfile.Scalar {
			list = append(list, FileUse{Use: u, field: f, Node: at})
		}
	}
	return list
}

// IsStd reports whether the path is the standard input or output.
func (f FileUse) IsStd(text string) bool { return f.field.Std && text == core.StdPath }

// Std describes the standard input or output in messages.
func (f FileUse) Std() string {
	if f.Use.Kind == registry.KindReader {
		return "the standard input"
	}
	return "the standard output"
}

// Path is the path in a bound config, with links in the folder resolved.
func (f FileUse) Path(cfg any) string {
	text := reflect.ValueOf(cfg).Elem().FieldByIndex(f.field.Index).String()
	switch {
	case f.IsStd(text):
		return f.Std()
	case urlpath.Is(text):
		return text
	}
	abs, err := filepath.Abs(text)
	if err != nil {
		return text
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	if f.Use.Kind == registry.KindReader {
		if target, err := filepath.EvalSymlinks(abs); err == nil {
			return target
		}
	}
	return abs
}

// AnyKey takes every key of a config.
func AnyKey(yamlfile.Field) bool { return true }

// IsTarget reports whether a writer's key names its target.
func IsTarget(f yamlfile.Field) bool {
	return f.Main || f.Key == "database" || f.Key == "together" || holdsNested(f.Type)
}

// IsTargetOrMode is IsTarget for a writer that refills its target (rule TW4): its committed rows
// would be removed.
func IsTargetOrMode(f yamlfile.Field) bool { return IsTarget(f) || f.Key == "mode" }

func holdsNested(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t == reflect.TypeFor[registry.Nested]() {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, f := range yamlfile.FieldsOf(t).Fields {
		if holdsNested(f.Type) {
			return true
		}
	}
	return false
}

// ValueOf returns a field's node in n, which may be the value of the main field.
func ValueOf(n *yamlfile.Node, f yamlfile.Field) *yamlfile.Node {
	if n != nil && n.Kind != yamlfile.Map && f.Main {
		return n
	}
	return n.Get(f.Key)
}
