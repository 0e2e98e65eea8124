package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/smallfile"
)

// maxDepth is more than any setting needs; the parser's memory grows with its square.
const maxDepth = 20

// parse reads surfin.yaml strictly: the texts of all keys by their path, with their positions, and
// an *Error for every unknown key.
func parse(path string, data []byte) *settingsFile {
	f := &settingsFile{
		path: path, lines: strings.Split(string(data), "\n"), values: map[string]string{}, places: map[string]origin{}, secrets: map[string]secret.Origin{},
	}
	if line, column, deep := smallfile.Nested(string(data), maxDepth); deep {
		where, excerpt := f.placeAt(line, column)
		f.problems = []error{&Error{Where: where, Err: fmt.Errorf("values are nested deeper than %d levels", maxDepth), Excerpt: excerpt}}
		return f
	}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		f.syntax(err)
		return f
	}
	for _, d := range doc.Docs {
		if d.Body != nil {
			f.root(d.Body)
		}
	}
	return f
}

type mappingValue = ast.MappingValueNode

type settingsFile struct {
	path     string
	lines    []string
	values   map[string]string
	places   map[string]origin
	secrets  map[string]secret.Origin
	problems []error
}

// root walks the top of the document: known sections, and databases, with free names on the second
// level.
func (f *settingsFile) root(body ast.Node) {
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
	f.each(body, "", func(key *mappingValue, name string) {
		names, ok := known[name]
		switch {
		case !ok:
			f.unknown(key, name, sortedKeys(known))
		case name == "databases":
			f.each(key.Value, name, f.database)
		case name == secretsKey:
			f.each(key.Value, name, f.secret)
		case len(names) > 0:
			f.each(key.Value, name, func(sub *mappingValue, subName string) {
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

// database is `name: URL` or `name: {url: URL, max_open: N}`.
func (f *settingsFile) database(key *mappingValue, name string) {
	path := "databases." + name
	if _, ok := key.Value.(ast.MapNode); !ok {
		f.scalar(key, path+".url")
		return
	}
	f.each(key.Value, path, func(sub *mappingValue, subName string) {
		if subName != "url" && subName != "max_open" {
			f.unknown(sub, path+"."+subName, []string{"max_open", "url"})
			return
		}
		f.scalar(sub, path+"."+subName)
	})
}

func (f *settingsFile) each(node ast.Node, path string, visit func(key *mappingValue, name string)) {
	m, ok := node.(ast.MapNode)
	if !ok {
		if node.Type() != ast.NullType {
			f.problem(node.GetToken(), fmt.Errorf("%s: keys and values are expected here", orRoot(path)))
		}
		return
	}
	for it := m.MapRange(); it.Next(); {
		visit(it.KeyValue(), it.Key().GetToken().Value)
	}
}

func (f *settingsFile) scalar(key *mappingValue, path string) {
	if key.Value.Type() == ast.NullType {
		return
	}
	s, ok := key.Value.(ast.ScalarNode)
	if !ok {
		f.problem(key.Value.GetToken(), fmt.Errorf("%s: a single value is expected here", path))
		return
	}
	tk := s.GetToken()
	f.values[path] = tk.Value
	if lit, ok := s.(*ast.LiteralNode); ok {
		f.values[path] = strings.TrimSpace(lit.Value.Value)
	}
	where, excerpt := f.place(tk)
	f.places[path] = origin{where: where, excerpt: excerpt, dir: filepath.Dir(f.path)}
}

func (f *settingsFile) unknown(key *mappingValue, path string, allowed []string) {
	f.problem(key.Key.GetToken(), fmt.Errorf("unknown key %s (allowed: %s)", path, strings.Join(allowed, ", ")))
}

func (f *settingsFile) problem(tk *token.Token, err error) {
	where, excerpt := f.place(tk)
	f.problems = append(f.problems, &Error{Where: where, Err: err, Excerpt: excerpt})
}

func (f *settingsFile) syntax(err error) {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		f.problem(at.GetToken(), errors.New(secret.Line(at.GetMessage())))
		return
	}
	f.problems = append(f.problems, &Error{Where: f.path, Err: errors.New(secret.Line(err.Error()))})
}

// place returns FILE:LINE:COLUMN of a token, and its line with a caret.
func (f *settingsFile) place(tk *token.Token) (where, excerpt string) {
	return f.placeAt(tk.Position.Line, tk.Position.Column)
}

// placeAt masks possible secrets in the line: the caret stays before them.
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

func orRoot(path string) string {
	if path == "" {
		return "settings"
	}
	return path
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
