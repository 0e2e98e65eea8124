package yamlfile

import (
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
)

// Field is a struct field as its tags describe it.
type Field struct {
	Index      []int
	Type       reflect.Type
	Key        string
	Doc        string
	Default    string
	HasDefault bool
	Required   bool
	Enum       []string
	Later      []string
	Cures      map[string]string
	Form       string
	// Main may stand for the whole struct.
	Main bool
	Item string
	Rest bool
	// Path means that the text is a path relative to the file.
	Path bool
	Std  bool
	// Program: with a slash, a path relative to the file.
	Program bool
	Output  bool
	Literal bool
	Kind    string
	Given   string
	// AtOpen: opened, read and closed while the outer one is opened.
	AtOpen bool
}

func (f Field) form(n *Node, kind Kind) string {
	if f.Type != nil && f.Type.Kind() == reflect.Pointer {
		f.Type = f.Type.Elem()
	}
	switch {
	case f.Form != "":
		return f.Form
	case f.Type == nil:
	case kind == List && f.Program && strings.ContainsAny(n.Text, " |;&<>$"):
		return "a list is a program and its arguments, such as [ls, -l]; a line for sh is `script: " + n.Text + "`"
	case kind == List && n.Kind == Scalar && f.Type.Kind() == reflect.Slice:
		return "write [" + n.Text + "]"
	case kind == List && n.Kind == Map && len(n.Entries) > 0 && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
		return "write - in front of each item: - " + n.Entries[0].Key.Text + ": ..."
	case kind == Map && n.Kind == Scalar && f.Type.Kind() == reflect.Struct:
		keys := FieldsOf(f.Type).Fields
		for _, key := range keys {
			if len(keys) == 1 || slices.Contains(key.Enum, n.Text) {
				return "write {" + key.Key + ": " + n.Text + "}"
			}
		}
	}
	return ""
}

// At is embedded by structs that record their position.
type At struct{ Node *Node }

// Extra's tags: `later:"a b"` are known, unsupported keys, `ignore:"x-"` is a prefix of ignored
// keys.
type Extra struct{}

// Keys holds the tags of a struct type.
type Keys struct {
	Fields []Field
	Later  []string
	Ignore string
	at     []int // index of the embedded At; nil means none
}

// FieldsOf reads the tags of struct type t and of embedded structs: `key` (required for a field of
// the file), `doc`, `default`, `required`, `enum`, `main`, `path` (true, std, program), `literal`,
// `rest`, `item`, `kind`, `given`, `later`.
func FieldsOf(t reflect.Type) Keys {
	keys := Keys{Fields: make([]Field, 0, t.NumField())}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Type == reflect.TypeFor[At]():
			keys.at = f.Index
		case f.Type == reflect.TypeFor[Extra]():
			keys.Later = append(keys.Later, strings.Fields(f.Tag.Get("later"))...)
			keys.Ignore = f.Tag.Get("ignore")
		case f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("key") == "":
			inner := FieldsOf(f.Type)
			for _, g := range inner.Fields {
				g.Index = append([]int{i}, g.Index...)
				keys.Fields = append(keys.Fields, g)
			}
			keys.Later = append(keys.Later, inner.Later...)
		case f.IsExported() && f.Tag.Get("key") != "":
			keys.Fields = append(keys.Fields, fieldOf(f))
		}
	}
	return keys
}

func fieldOf(f reflect.StructField) Field {
	field := Field{Index: f.Index, Type: f.Type}
	if f.Type.Kind() == reflect.String && f.Type.PkgPath() != "" {
		if choice, ok := reflect.Zero(f.Type).Interface().(interface{ Values() []string }); ok {
			field.Enum = choice.Values()
		}
	}
	for name, text := range tagsOf(f.Tag) {
		switch name {
		case "key":
			field.Key = text
		case "doc":
			field.Doc = text
		case "default":
			field.Default, field.HasDefault = text, true
		case "required":
			field.Required = text == "true"
		case "main":
			field.Main = text == "true"
		case "path":
			field.Path, field.Std, field.Program = text == "true" || text == "std", text == "std", text == "program"
		case "output":
			field.Output = text == "true"
		case "literal":
			field.Literal = text == "true"
		case "kind":
			field.Kind = text
		case "given":
			field.Given = text
		case "atopen":
			field.AtOpen = text == "true"
		case "rest":
			field.Rest = text == "true"
		case "item":
			field.Item = text
		case "later":
			field.Later = strings.Fields(text)
		case "cure":
			field.Cures = curesOf(text)
		case "form":
			field.Form = text
		case "enum":
			field.Enum = enumOf(text)
		}
	}
	return field
}

func tagsOf(tag reflect.StructTag) iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for rest := strings.TrimLeft(string(tag), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
			name, after, found := strings.Cut(rest, ":")
			quoted, err := strconv.QuotedPrefix(after)
			if !found || err != nil {
				return
			}
			text, err := strconv.Unquote(quoted)
			if err != nil || !yield(name, text) {
				return
			}
			rest = after[len(quoted):]
		}
	}
}

func enumOf(tag string) (texts []string) {
	if tag == "" {
		return nil
	}
	for text := range strings.SplitSeq(tag, ",") {
		texts = append(texts, strings.TrimSpace(text))
	}
	return texts
}

// Names returns the keys that this version supports, in the order of the struct.
func (k Keys) Names() []string {
	var names []string
	for _, f := range k.Fields {
		if !f.Rest {
			names = append(names, f.Key)
		}
	}
	return names
}

// Find returns the field with the key.
func (k Keys) Find(key string) (Field, bool) {
	for _, f := range k.Fields {
		if f.Key == key && !f.Rest {
			return f, true
		}
	}
	return Field{}, false
}

// Rest returns the field that takes the keys of no other field.
func (k Keys) Rest() (Field, bool) {
	for _, f := range k.Fields {
		if f.Rest {
			return f, true
		}
	}
	return Field{}, false
}

// Main returns the field that may stand for the struct.
func (k Keys) Main() (Field, bool) {
	for _, f := range k.Fields {
		if f.Main {
			return f, true
		}
	}
	return Field{}, false
}

func curesOf(tag string) map[string]string {
	if tag == "" {
		return nil
	}
	cures := map[string]string{}
	for entry := range strings.SplitSeq(tag, "|") {
		part, text, _ := strings.Cut(entry, "=")
		cures[part] = text
	}
	return cures
}

const longEnum = 20

func (f *Field) cure(text string) string {
	for part, cure := range f.Cures {
		if strings.Contains(strings.ToLower(text), part) {
			return cure
		}
	}
	if near := nearest.Name(text, f.Enum); near != "" && len(f.Enum) > longEnum {
		return "did you mean " + near + "?"
	}
	return Suggest(text, f.Enum)
}

// Suggest returns the name that was probably meant, and the list of names.
func Suggest(name string, names []string) string {
	hint := ""
	if near := nearest.Name(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	if len(names) == 0 {
		return hint
	}
	return strings.TrimSpace(hint + " allowed: " + strings.Join(names, ", "))
}
