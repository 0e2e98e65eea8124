package settings

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Error is one error in the settings.
type Error struct {
	Where string
	Err   error
	// Excerpt is the file's line with a caret.
	Excerpt string
}

// Error returns the position and the error.
func (e *Error) Error() string {
	text := e.Where + ": " + e.Err.Error()
	if e.Excerpt != "" {
		text += "\n" + e.Excerpt
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

type origin struct {
	where     string
	excerpt   string
	dir       string
	isDefault bool
}

const (
	placesKey  = "places"
	secretsKey = "secrets"
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
	settings []place.Setting
	problems []error
}

// Databases have free names.
func (f *settingsFile) root(body *yamlfile.Node) {
	known := map[string][]string{"databases": nil, placesKey: nil, secretsKey: nil}
	for _, c := range catalog() {
		section, name, nested := strings.Cut(c.key, ".")
		names := known[section]
		if name, _, _ = strings.Cut(name, "."); nested && !slices.Contains(names, name) {
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
		case name == placesKey:
			f.each(key.Value, name, f.place)
		case name == secretsKey:
			f.each(key.Value, name, f.secret)
		case len(names) > 0:
			f.each(key.Value, name, func(sub yamlfile.Entry, subName string) {
				if tokenSections()[name+"."+subName] != "" {
					f.tokens(sub, name+"."+subName)
					return
				}
				if name+"."+subName == "api.proxy" {
					f.proxy(sub)
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

func (f *settingsFile) proxy(key yamlfile.Entry) {
	var names []string
	for _, s := range proxySettings() {
		if name, is := strings.CutPrefix(s.key, "api.proxy."); is {
			names = append(names, name)
		}
	}
	f.each(key.Value, "api.proxy", func(sub yamlfile.Entry, name string) {
		if !slices.Contains(names, name) {
			f.unknown(sub, "api.proxy."+name, names)
			return
		}
		f.scalar(sub, "api.proxy."+name)
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

// The scheme knows the keys of its places.
func (f *settingsFile) place(key yamlfile.Entry, name string) {
	where, _ := f.placeAt(key.Key.Line, key.Key.Col)
	setting := place.Setting{URL: name, Values: map[string]string{}, Where: map[string]string{"": where}}
	f.each(key.Value, "places."+name, func(sub yamlfile.Entry, subName string) {
		if sub.Value.Kind != yamlfile.Scalar {
			f.problem(sub.Value, fmt.Errorf("places.%s.%s: a single value is expected here", name, subName))
			return
		}
		where, _ := f.placeAt(sub.Value.Line, sub.Value.Col)
		setting.Values[subName], setting.Where[subName] = sub.Value.Text, where
	})
	f.settings = append(f.settings, setting)
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

var afterKey = regexp.MustCompile(`^(\s*[A-Za-z0-9_-]+\s*:)?.*$`)

func withoutValue(line string) string { return afterKey.ReplaceAllString(line, "${1} ***") }

func (f *settingsFile) tokens(key yamlfile.Entry, path string) {
	f.each(key.Value, path, func(client yamlfile.Entry, name string) {
		if !clientName.MatchString(name) {
			f.problem(client.Key, fmt.Errorf("%s: %q is not a valid client name (letters, digits, _ and -)", path, name))
			return
		}
		f.scalar(client, path+"."+name)
	})
}

// hasTokens: the line, or one up to its top-level key, names a section of tokens.
func (f *settingsFile) hasTokens(line int) bool {
	for at := min(line, len(f.lines)) - 1; at >= 0; at-- {
		text := f.lines[at]
		if strings.Contains(strings.ToLower(text), "token") {
			return true
		}
		if at < line-1 && text != "" && !strings.ContainsAny(text[:1], " \t-#}]") {
			return false
		}
	}
	return false
}

// {file: PATH} or {command: [PROGRAM, ...]}: only a secret's location, never its value.
func (f *settingsFile) secret(key yamlfile.Entry, name string) {
	path := secretsKey + "." + name
	if !secretName.MatchString(name) {
		f.problem(key.Key, fmt.Errorf("%q is not a valid secret name (letters, digits and _, not beginning with a digit)", name))
		return
	}
	if key.Value.Kind != yamlfile.Map {
		f.problem(key.Key, fmt.Errorf("%s takes the location of the secret, not its value: {file: PATH} or {command: [PROGRAM, ARGUMENT]}", path))
		return
	}
	var origin secret.Origin
	f.each(key.Value, path, func(sub yamlfile.Entry, subName string) {
		switch subName {
		case "file":
			f.scalar(sub, path+".file")
			if text, ok := f.values[path+".file"]; ok {
				delete(f.values, path+".file") // only the file may set it
				origin.File = text
				if !filepath.IsAbs(text) {
					origin.File = filepath.Join(filepath.Dir(f.path), text)
				}
			}
		case "command":
			origin.Command = f.command(sub, path)
			origin.Dir = filepath.Dir(f.path)
		default:
			f.unknown(sub, path+"."+subName, []string{"command", "file"})
		}
	})
	if (origin.File == "") == (len(origin.Command) == 0) {
		f.problem(key.Key, fmt.Errorf("%s takes a file or a command", path))
		return
	}
	f.secrets[name] = origin
}

func (f *settingsFile) command(key yamlfile.Entry, path string) []string {
	if key.Value.Kind != yamlfile.List {
		f.problem(key.Value, fmt.Errorf("%s.command is a list: [PROGRAM, ARGUMENT, ...]; no shell reads it", path))
		return nil
	}
	var words []string
	for _, item := range key.Value.Items {
		if item.Kind != yamlfile.Scalar {
			f.problem(item, fmt.Errorf("%s.command: a single value is expected here", path))
			return nil
		}
		words = append(words, item.Text)
	}
	if len(words) > 0 && strings.Contains(words[0], "/") && !filepath.IsAbs(words[0]) {
		words[0] = filepath.Join(filepath.Dir(f.path), words[0])
	}
	return words
}
