package yamlfile

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a node.
type Kind int

// The kinds of node.
const (
	Scalar Kind = iota + 1
	List
	Map
)

// String returns how messages call it.
func (k Kind) String() string {
	switch k {
	case Scalar:
		return "a single value"
	case List:
		return "a list"
	case Map:
		return "keys with values"
	}
	return "nothing"
}

type style int

const (
	plain style = iota
	quoted
	literal
	folded
)

// Node is a value of the document, after aliases and merges. It is immutable
// once parsed.
type Node struct {
	Kind Kind
	// Line and Col are 1-based; Col counts characters.
	Line, Col int
	Text      string
	Empty     bool
	Items     []*Node
	Entries   []Entry
	Bad       bool

	style   style
	comment string // after it on its line
	doc     *Document
	use     *Use
	origin  *origin
}

// Entry is one key of a map.
type Entry struct {
	Key   *Node // a scalar
	Value *Node
}

// Get returns the value under key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, e := range n.Entries {
		if e.Key.Text == key {
			return e.Value
		}
	}
	return nil
}

// KeyOf returns the key's own node, or n if there is none.
func (n *Node) KeyOf(key string) *Node {
	for _, e := range n.Entries {
		if e.Key.Text == key {
			return e.Key
		}
	}
	return n
}

// IsQuoted reports quotes or a block.
func (n *Node) IsQuoted() bool { return n.style != plain }

// Comment returns the comment on the node's line, where an unquoted # ends an expression.
func (n *Node) Comment() string { return n.comment }

// Find follows a dotted path of keys and indexes as far as it leads.
func (n *Node) Find(path string) *Node {
	for _, key := range strings.Split(path, ".") {
		next := n.Get(key)
		if i, err := strconv.Atoi(key); err == nil && n.Kind == List && i >= 0 && i < len(n.Items) {
			next = n.Items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n
}

// WithText returns a scalar at the position of n.
func (n *Node) WithText(text string) *Node {
	return n.Plain(text)
}

// Document is a parsed file.
type Document struct {
	Path string
	Text string
	// Root is nil if the document could not be parsed.
	Root  *Node
	Empty bool
	// Describe returns a position in a Go definition; nil for a file.
	Describe func(steps []Step) string

	lines []string
}

func splitLines(text string) []string {
	text = strings.TrimPrefix(text, "\uFEFF")
	var lines []string
	from := 0
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == '\r' && strings.HasPrefix(text[i+n:], "\n") {
			n++
		}
		if r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			lines = append(lines, text[from:i])
			from = i + n
		}
		i += n
	}
	return append(lines, text[from:])
}

func (d *Document) clamp(line, col int) (int, int) {
	line = min(max(line, 1), len(d.lines))
	return line, min(max(col, 1), utf8.RuneCountInString(d.lines[line-1])+1)
}

func (d *Document) locate(n *Node, offset int) (line, col int) {
	n, offset = n.source(offset)
	if offset < 0 || offset > len(n.Text) || n.Line < 1 || n.Line > len(d.lines) {
		return n.Line, n.Col
	}
	before := n.Text[:offset]
	switch n.style {
	case plain, quoted:
		from := n.Col - 1
		if n.style == quoted {
			from++
		}
		if offset == 0 || from < 0 {
			break
		}
		if line, col, found := d.locateFolded(n.Text, offset, n.Line, from); found {
			return line, col
		}
	case literal:
		down := strings.Count(before, "\n")
		last := before[strings.LastIndexByte(before, '\n')+1:]
		full := n.Text[len(before)-len(last):]
		if i := strings.IndexByte(full, '\n'); i >= 0 {
			full = full[:i]
		}
		if line = n.Line + 1 + down; line > len(d.lines) || !strings.HasSuffix(d.lines[line-1], full) {
			break
		}
		indent := utf8.RuneCountInString(d.lines[line-1]) - utf8.RuneCountInString(full)
		return line, indent + 1 + utf8.RuneCountInString(last)
	case folded:
		if line, col, found := d.locateFolded(n.Text, offset, n.Line+1, 0); found {
			return line, col
		}
	}
	return n.Line, n.Col
}

func (d *Document) locateFolded(text string, offset, line, from int) (int, int, bool) {
	begin := 0
	for ; line <= len(d.lines) && begin <= offset; line++ {
		runes := []rune(d.lines[line-1])
		for from < len(runes) && (runes[from] == ' ' || runes[from] == '\t') {
			from++
		}
		if from > len(runes) {
			return 0, 0, false
		}
		source := strings.TrimRight(string(runes[from:]), " \t")
		if before := text[begin:offset]; strings.HasPrefix(source, before) {
			return line, from + 1 + utf8.RuneCountInString(before), true
		}
		if !strings.HasPrefix(text[begin:], source) {
			return 0, 0, false
		}
		begin += len(source)
		for begin < len(text) && (text[begin] == ' ' || text[begin] == '\n') {
			begin++
		}
		from = 0
	}
	return 0, 0, false
}

// LastLine is the last line of the value in the text of its document.
func (n *Node) LastLine() int {
	last := n.lastNode()
	if n.doc == nil {
		return last
	}
	// A block or a folded text has further lines, indented more than the value.
	for line := last; line < len(n.doc.lines); line++ {
		text := n.doc.lines[line]
		indented := strings.TrimLeft(text, " ")
		if indented == "" {
			continue
		}
		if len(text)-len(indented) < n.Col {
			break
		}
		last = line + 1
	}
	return last
}

// lastNode is the greatest line of a node below n in the same document.
func (n *Node) lastNode() int {
	last := n.Line
	for _, item := range n.Items {
		if item.doc == n.doc {
			last = max(last, item.lastNode())
		}
	}
	for _, e := range n.Entries {
		if e.Key.doc == n.doc {
			last = max(last, e.Key.Line)
		}
		if e.Value.doc == n.doc {
			last = max(last, e.Value.lastNode())
		}
	}
	return last
}

// Step is a step from the root to a value.
type Step struct {
	// Key is empty for a list's Index, from 0.
	Key   string
	Index int
	In    *Node
}

// Use stands for a copy of another part: an element that uses a template.
type Use struct {
	What string
	At   *Node
}

type origin struct {
	node  *Node
	spans []span
}

type span struct {
	at, offset int
	pasted     bool
}
