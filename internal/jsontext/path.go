package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Step is a key of an object, or an index of an array.
type Step struct {
	Key   string
	Index int  // if Array
	Array bool // into an array
	Fold  bool // whether the case of the key is ignored
}

// parsePath reads properties.mag, geometry.coordinates[0] or a["b.c"].d.
func parsePath(text string) ([]Step, error) {
	var steps []Step
	rest := text
	for rest != "" {
		if rest[0] == '[' {
			step, n, err := bracket(rest)
			if err == nil && len(steps) == 0 && step.Array {
				err = errors.New("it starts with an index, but items are objects")
			}
			if err != nil {
				return nil, err
			}
			steps, rest = append(steps, step), rest[n:]
			continue
		}
		if len(steps) > 0 {
			if rest[0] != '.' {
				return nil, fmt.Errorf(`expected "." or "[" before %q`, rest)
			}
			rest = rest[1:]
		}
		n := strings.IndexAny(rest, ".[]")
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			return nil, errors.New("a key is empty")
		}
		steps, rest = append(steps, Step{Key: rest[:n]}), rest[n:]
	}
	if len(steps) == 0 {
		return nil, errors.New("it is empty")
	}
	return steps, nil
}

func bracket(text string) (Step, int, error) {
	if strings.HasPrefix(text, `["`) {
		var key string
		dec := json.NewDecoder(strings.NewReader(text[1:]))
		if err := dec.Decode(&key); err != nil {
			return Step{}, 0, fmt.Errorf("a quoted key does not end: %s", text)
		}
		n := 1 + int(dec.InputOffset())
		if n >= len(text) || text[n] != ']' {
			return Step{}, 0, fmt.Errorf(`expected "]" after %s`, text[:n])
		}
		return Step{Key: key}, n + 1, nil
	}
	n := strings.IndexByte(text, ']')
	if n < 0 {
		return Step{}, 0, fmt.Errorf(`"]" is missing after %s`, text)
	}
	index, err := strconv.ParseUint(text[1:n], 10, 31)
	if err != nil {
		return Step{}, 0, fmt.Errorf(`%s is neither an index (0, 1, 2, ...) nor a quoted key`, text[:n+1])
	}
	return Step{Index: int(index), Array: true}, n + 1, nil
}

// Keys returns the keys of a path that has keys only, such as data.features.
func Keys(path string) ([]string, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, fmt.Errorf("%q is not a path: %w", path, err)
	}
	keys := make([]string, len(steps))
	for i, s := range steps {
		if s.Array {
			return nil, fmt.Errorf("%q has an index: only keys are allowed here", path)
		}
		keys[i] = s.Key
	}
	return keys, nil
}

// CheckName refuses a name that is surely an invalid path.
func CheckName(name string) error {
	_, err := parsePath(name)
	if err == nil {
		return nil
	}
	for rest := name; ; {
		i := strings.IndexByte(rest, '[')
		if i < 0 {
			return nil
		}
		if rest = rest[i+1:]; rest != "" && strings.IndexByte(`"-0123456789`, rest[0]) >= 0 {
			quoted, _ := json.Marshal(name) //nolint:errcheck // a string has a JSON form
			return fmt.Errorf("%q is not a path: %w; a key of this name is written [%s]", name, err, quoted)
		}
	}
}

// Finder finds values by name or path in documents. It is not safe for concurrent use.
type Finder struct {
	// Found has the values in the last document, void with it; nil if missing.
	Found [][]byte
	// Unknown is called with the path of each unknown key; its error ends the reading.
	Unknown func(path string) error
	Start   []int
	byName  []bool // found under the whole name as a key, which takes precedence
	root    *node
	blocked *node  // a value that a path cannot lead through
	value   []byte // of stray
	scan    Scanner
}

type node struct {
	text     string // the path to it
	key      string
	index    int
	fold     bool
	next     int // the child that is probably requested next
	children []*node
	indices  []*node
	fields   []int // fields with their path ending here
	named    []int // fields with this key as their whole name
	below    []int // fields with their path through here
}

// NewFinder returns a finder without fields.
func NewFinder() *Finder { return &Finder{root: &node{}} }

// AddName adds a field and returns its number: the key name, else the path name.
func (f *Finder) AddName(name string) int {
	n := f.root.step(Step{Key: name})
	n.named = append(n.named, len(f.Found))
	if steps, err := parsePath(name); err == nil && (len(steps) > 1 || steps[0].Key != name) {
		return f.AddPath(steps)
	}
	return f.add()
}

// AddPath adds a field with its value at the end of steps, and returns its number.
func (f *Finder) AddPath(steps []Step) int {
	n := f.root
	for _, s := range steps {
		if n != f.root {
			n.below = append(n.below, len(f.Found))
		}
		n = n.step(s)
	}
	n.fields = append(n.fields, len(f.Found))
	return f.add()
}

func (f *Finder) add() int {
	f.Found, f.Start, f.byName = append(f.Found, nil), append(f.Start, 0), append(f.byName, false)
	return len(f.Found) - 1
}

func (n *node) step(s Step) *node {
	list := &n.children
	if s.Array {
		list = &n.indices
	}
	for _, c := range *list {
		if c.key == s.Key && c.index == s.Index && c.fold == s.Fold {
			return c
		}
	}
	c := &node{key: s.Key, index: s.Index, fold: s.Fold, text: s.Key}
	switch {
	case s.Array:
		c.text = fmt.Sprintf("%s[%d]", n.text, s.Index)
	case n.text != "":
		c.text = n.text + "." + s.Key
	}
	*list = append(*list, c)
	return c
}

func (n *node) child(key []byte) *node {
	if n == nil {
		return nil
	}
	for i := range n.children {
		if i += n.next; i >= len(n.children) {
			i -= len(n.children)
		}
		if c := n.children[i]; string(key) == c.key || c.fold && bytes.EqualFold(key, []byte(c.key)) {
			n.next = i + 1
			return c
		}
	}
	return nil
}

func (n *node) at(index int) *node {
	if n == nil {
		return nil
	}
	for _, c := range n.indices {
		if c.index == index {
			return c
		}
	}
	return nil
}

func (f *Finder) unknown(n *node, key []byte) error {
	if len(n.children) == 0 || len(n.fields)+len(n.named) > 0 { // the value as a whole is a field
		return nil
	}
	path := string(key)
	switch quoted, err := json.Marshal(path); {
	case err == nil && (path == "" || strings.ContainsAny(path, `.[]"`)):
		path = n.text + "[" + string(quoted) + "]"
	case n.text != "":
		path = n.text + "." + path
	}
	return f.Unknown(path)
}

func (f *Finder) note(n *node, start int, value []byte) {
	for _, i := range n.named {
		f.Found[i], f.Start[i], f.byName[i] = value, start, true
	}
	for _, i := range n.fields {
		if !f.byName[i] {
			f.Found[i], f.Start[i] = value, start
		}
	}
	if len(n.below) == 0 || f.blocked != nil || value[0] == 'n' {
		return
	}
	if value[0] == '{' && len(n.children) > 0 || value[0] == '[' && len(n.indices) > 0 {
		return
	}
	f.blocked, f.value = n, value
}

// Find reads doc strictly and fills Found. A path through a value without members
// is a *PathError, unless it is null.
func (f *Finder) Find(doc []byte) error {
	f.clear()
	if err := f.scan.find(doc, f); err != nil {
		return err
	}
	return f.blockedError()
}

// Locate is Find without the check for strictness.
func (f *Finder) Locate(doc []byte) error {
	f.clear()
	f.scan.reset(doc, false)
	f.scan.seek = f
	end, err := f.scan.value(f.scan.blank(0), f.root, 0)
	if err != nil {
		return err
	}
	if end = f.scan.blank(end); end < len(doc) {
		return f.scan.unexpected(end, "the end")
	}
	return f.blockedError()
}

func (f *Finder) clear() {
	clear(f.Found)
	clear(f.byName)
	f.blocked = nil
}

func (f *Finder) blockedError() error {
	if f.blocked == nil {
		return nil
	}
	for _, i := range f.blocked.below {
		if f.Found[i] == nil {
			what := "an object"
			if len(f.blocked.children) == 0 {
				what = "an array"
			}
			return &PathError{Field: i, Msg: fmt.Sprintf("%s is not %s: %s", f.blocked.text, what, Shorten(f.value))}
		}
	}
	return nil
}

// Shorten returns the beginning of doc, for messages.
func Shorten(doc []byte) string {
	const maxLen = 60
	if len(doc) > maxLen {
		return strings.ToValidUTF8(string(doc[:maxLen]), "\uFFFD") + "…"
	}
	return strings.ToValidUTF8(string(doc), "\uFFFD")
}
