package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// parse is strict: an *Error for every mistake.
func parse(path string, data []byte) *settingsFile {
	f := &settingsFile{
		path: path, lines: strings.Split(string(data), "\n"), values: map[string]string{}, places: map[string]origin{}, secrets: map[string]secret.Origin{},
	}
	doc, problems := yamlfile.Parse(path, data)
	if doc.Empty {
		return f
	}
	if doc.Root != nil {
		f.root(doc.Root)
	}
	if wrong, is := errors.AsType[yamlfile.Problems](problems.Err()); is {
		f.problems = append(f.syntax(wrong), f.problems...)
	}
	return f
}

type settingsFile struct {
	path     string
	lines    []string
	values   map[string]string
	places   map[string]origin
	secrets  map[string]secret.Origin
	problems []error
}

// Databases have free names.
func (f *settingsFile) root(body *yamlfile.Node) {
	known := map[string][]string{"databases": nil, secretsKey: nil}
	for _, c := range catalog() {
		section, name, nested := strings.Cut(c.key, ".")
		names := known[section]
		if nested {
			names = append(names, name)
		}
		known[section] = names
	}
	for path := range tokenSections() {
		section, name, _ := strings.Cut(path, ".")
		known[section] = append(known[section], name)
		slices.Sort(known[section])
	}
	f.each(body, "", func(key yamlfile.Entry, name string) {
		names, ok := known[name]
		switch {
		case !ok:
			f.unknown(key, name, sortedKeys(known))
		case name == "databases":
			f.each(key.Value, name, f.database)
		case name == secretsKey:
			f.each(key.Value, name, f.secret)
		case len(names) > 0:
			f.each(key.Value, name, func(sub yamlfile.Entry, subName string) {
				if tokenSections()[name+"."+subName] != "" {
					f.tokens(sub, name+"."+subName)
					return
				}
				if !slices.Contains(names, subName) {
					f.unknown(sub, name+"."+subName, names)
					return
				}
				f.scalar(sub, name+"."+subName)
			})
		default:
			f.scalar(key, name)
		}
	})
}

func (f *settingsFile) database(key yamlfile.Entry, name string) {
	path := "databases." + name
	if key.Value.Kind != yamlfile.Map {
		f.scalar(key, path+".url")
		return
	}
	f.each(key.Value, path, func(sub yamlfile.Entry, subName string) {
		if subName != "url" && subName != "max_open" {
			f.unknown(sub, path+"."+subName, []string{"max_open", "url"})
			return
		}
		f.scalar(sub, path+"."+subName)
	})
}

func (f *settingsFile) each(n *yamlfile.Node, path string, visit func(key yamlfile.Entry, name string)) {
	if n.Kind != yamlfile.Map && !isNull(n) {
		f.problem(n, fmt.Errorf("%s: keys and values are expected here", cmp.Or(path, "settings")))
	}
	for _, e := range n.Entries {
		visit(e, e.Key.Text)
	}
}

// A key without a value says nothing.
func isNull(n *yamlfile.Node) bool {
	return n.Bad || n.Empty || n.Kind == yamlfile.Scalar && !n.IsQuoted() && (n.Text == "~" || strings.EqualFold(n.Text, "null"))
}

func (f *settingsFile) scalar(key yamlfile.Entry, path string) {
	n := key.Value
	switch {
	case isNull(n):
		return
	case n.Kind != yamlfile.Scalar:
		f.problem(n, fmt.Errorf("%s: a single value is expected here", path))
		return
	}
	f.values[path] = n.Text
	if strings.Contains(n.Text, "\n") {
		f.values[path] = strings.TrimSpace(n.Text)
	}
	where, excerpt := f.placeAt(n.Line, n.Col)
	f.places[path] = origin{where: where, excerpt: excerpt, dir: filepath.Dir(f.path)}
}

func (f *settingsFile) unknown(key yamlfile.Entry, path string, allowed []string) {
	f.problem(key.Key, fmt.Errorf("unknown key %s (allowed: %s)", path, strings.Join(allowed, ", ")))
}

func (f *settingsFile) problem(n *yamlfile.Node, err error) {
	f.problems = append(f.problems, f.errorAt(n.Line, n.Col, err))
}

func (f *settingsFile) errorAt(line, column int, err error) error {
	where, excerpt := f.placeAt(line, column)
	return &Error{Where: where, Err: err, Excerpt: excerpt}
}

// Lines that may have a token are not quoted.
func (f *settingsFile) syntax(problems yamlfile.Problems) (errs []error) {
	for _, p := range problems {
		text := p.Msg
		switch {
		case f.hasTokens(p.Line) && !strings.HasPrefix(text, `key "`):
			text = "this is not YAML"
		case p.Hint != "":
			text += " (" + p.Hint + ")"
		}
		errs = append(errs, f.errorAt(p.Line, p.Col, errors.New(secret.Line(text))))
	}
	return errs
}

// It masks possible secrets in the line, with the caret before them.
func (f *settingsFile) placeAt(line, column int) (where, excerpt string) {
	where = fmt.Sprintf("%s:%d:%d", f.path, line, column)
	if line < 1 || line > len(f.lines) {
		return where, ""
	}
	text := strings.TrimRight(strings.ReplaceAll(f.lines[line-1], "\t", " "), "\r")
	masked := secret.Line(text)
	if f.hasTokens(line) {
		masked = withoutValue(text)
	}
	for same := 0; masked != text && same < len(text); same++ {
		if same == len(masked) || masked[same] != text[same] {
			column = min(column, utf8.RuneCountInString(text[:same])+1)
			break
		}
	}
	text = clipped(masked)
	margin := fmt.Sprintf("%5d | ", line)
	return where, margin + text + "\n" + strings.Repeat(" ", len(margin)-2) + "| " + strings.Repeat(" ", max(column-1, 0)) + "^"
}

func clipped(text string) string {
	const most = 160
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
