package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

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
