package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/smallfile"
)

// Limits: an alias may expand beyond any memory.
const (
	MaxBytes = smallfile.MaxBytes
	maxNodes = 100_000
	MaxDepth = 100
)

// Parse reads one YAML document; Root is nil if there is nothing to decode.
func Parse(path string, text []byte) (*Document, *Collector) {
	d := &Document{Path: path, Text: string(text), lines: splitLines(strings.ToValidUTF8(string(text), "\uFFFD"))}
	c := d.NewCollector()
	if len(text) > MaxBytes {
		c.add(1, 1, fmt.Sprintf("the file has %d bytes, more than the %d allowed", len(text), MaxBytes), "")
		return d, c
	}
	if !utf8.Valid(text) {
		line, col := invalidAt(text)
		c.add(line, col, "the file is not UTF-8 here", "save it as UTF-8")
		return d, c
	}
	root, err := parseYAML(text)
	if err != nil && strings.Contains(err.Error(), "exceeded max depth") { // of the parser
		d.tooDeep(c, err)
		return d, c
	}
	if err != nil {
		d.syntax(c, err)
		return d, c
	}
	if root == nil || len(root.Content) == 0 {
		d.Empty = true
		c.add(1, 1, "the file is empty", "a job file begins with `job: NAME`")
		return d, c
	}
	r := resolver{doc: d, c: c, within: map[*yaml.Node]bool{}}
	d.Root = r.node(root.Content[0])
	if r.count > maxNodes {
		d.Root = nil
		c.add(1, 1, fmt.Sprintf("the file stands for more than %d values, through its aliases", maxNodes), "")
	}
	return d, c
}

type errSecond struct{ line, col int }

func (e *errSecond) Error() string { return "there is a second document" }

func parseYAML(text []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil { // yaml.v3 panics on some malformed input
			root, err = nil, fmt.Errorf("yaml: %v", p)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &errSecond{second.Line, second.Column}
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return &first, nil
}

func invalidAt(text []byte) (line, col int) {
	line, col = 1, 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			break
		}
		col++
		if r == '\n' {
			line, col = line+1, 1
		}
		text = text[n:]
	}
	return line, col
}

type resolver struct {
	doc    *Document
	c      *Collector
	within map[*yaml.Node]bool // anchors being resolved
	count  int
	depth  int
	deep   bool // depth was too much somewhere
}

func (r *resolver) node(y *yaml.Node) *Node {
	n := &Node{doc: r.doc, Line: y.Line, Col: y.Column, comment: strings.TrimSpace(y.LineComment)}
	if r.count++; r.count > maxNodes {
		n.Kind, n.Bad = Scalar, true
		return n
	}
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > MaxDepth {
		if !r.deep {
			r.c.Add(n, depthMessage, "")
		}
		r.deep = true // once is enough
		n.Kind, n.Bad = Scalar, true
		return n
	}
	if y.Style&yaml.TaggedStyle != 0 {
		return r.tagged(y, n)
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.alias(y, n)
	case yaml.SequenceNode:
		n.Kind = List
		r.list(y, n)
	case yaml.MappingNode:
		n.Kind = Map
		r.mapping(y, n)
	default:
		n.Kind, n.Text, n.style = Scalar, y.Value, styleOf(y)
		n.Empty = y.Value == "" && n.style == plain
	}
	return n
}

const depthMessage = "values are nested deeper than 100 levels" // MaxDepth

func styleOf(y *yaml.Node) style {
	switch {
	case y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return quoted
	case y.Style&yaml.LiteralStyle != 0:
		return literal
	case y.Style&yaml.FoldedStyle != 0:
		return folded
	}
	return plain
}

func (r *resolver) alias(y *yaml.Node, n *Node) *Node {
	if y.Alias == nil || r.within[y.Alias] {
		r.c.Add(n, fmt.Sprintf("the anchor &%s contains itself", y.Value), "")
		n.Kind, n.Bad = Scalar, true
		return n
	}
	r.within[y.Alias] = true
	defer delete(r.within, y.Alias)
	return r.node(y.Alias)
}

func (r *resolver) tagged(y *yaml.Node, n *Node) *Node {
	n.Kind, n.Bad, n.Text = Scalar, true, y.Value
	if strings.HasPrefix(y.Tag, "!!") || y.Kind != yaml.ScalarNode {
		r.c.Add(n, fmt.Sprintf("the tag %s is not allowed", y.Tag), "values are converted to the type of their key; quote a text that must stay a text")
		return n
	}
	n.Text = strings.TrimSpace(y.Tag + " " + y.Value)
	r.c.Add(n, fmt.Sprintf("YAML reads %s as a tag, not as text", y.Tag), "an expression that begins with ! needs quotes: "+quote(n.Text))
	return n
}

func (r *resolver) list(y *yaml.Node, n *Node) {
	for i := 0; i < len(y.Content); i++ {
		item := r.node(y.Content[i])
		n.Items = append(n.Items, item)
		if y.Style&yaml.FlowStyle == 0 || !cutExpression(y.Content[i]) {
			continue
		}
		end := i + 1
		for end < len(y.Content) && !closes(y.Content[end]) {
			end++
		}
		if end < len(y.Content) {
			r.comma(item, y.Content[i:end+1])
			i = end
		}
	}
}

func (r *resolver) mapping(y *yaml.Node, n *Node) {
	seen := map[string]*Node{}
	add := func(e Entry, at *Node) {
		if first, twice := seen[e.Key.Text]; twice {
			what := "appears twice"
			if at != e.Key {
				what += ", through <<"
			}
			r.c.Add(at, fmt.Sprintf("key %q %s", e.Key.Text, what), fmt.Sprintf("the other one is in line %d", first.Line))
			return
		}
		seen[e.Key.Text] = e.Key
		n.Entries = append(n.Entries, e)
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Tag == "!!merge" && key.Kind == yaml.ScalarNode {
			for _, e := range r.merge(value) {
				add(e, &Node{doc: r.doc, Line: key.Line, Col: key.Column})
			}
			continue
		}
		k := r.key(key, n)
		if k == nil {
			continue
		}
		v := r.node(value)
		add(Entry{Key: k, Value: v}, k)
		if y.Style&yaml.FlowStyle != 0 {
			if end := cutAt(y.Content, i); end > 0 {
				r.comma(v, append([]*yaml.Node{value}, evens(y.Content[i+2:end])...))
				i = end - 2
			}
		}
	}
}

func (r *resolver) key(y *yaml.Node, of *Node) *Node {
	if y.Kind == yaml.AliasNode && y.Alias != nil {
		y = y.Alias
	}
	if inner, is := bracesOf(y); is {
		r.c.Add(of, "{{ }} is not the syntax of a value", "write it in quotes: \"${"+inner+"}\"")
		of.Bad = true
		return nil
	}
	if y.Kind != yaml.ScalarNode {
		r.c.Add(&Node{Line: y.Line, Col: y.Column}, "a key must be a single text", "an expression with { or [ needs quotes, and ${...} inside of { } or [ ] as well")
		of.Bad = true
		return nil
	}
	return r.node(y)
}

func (r *resolver) merge(y *yaml.Node) []Entry {
	n := r.node(y)
	switch {
	case n.Bad:
		return nil
	case n.Kind == Map:
		return n.Entries
	case n.Kind == List:
		var all []Entry
		for _, item := range n.Items {
			if item.Kind != Map && !item.Bad {
				r.c.Add(item, "<< takes the anchor of keys with values, or a list of such", "")
			}
			all = append(all, item.Entries...)
		}
		return all
	}
	r.c.Add(n, "<< takes the anchor of keys with values, or a list of such", "")
	return nil
}

func (r *resolver) comma(n *Node, parts []*yaml.Node) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Value
	}
	n.Bad = true
	n.Text = strings.Join(texts, ", ")
	what := "this is not one expression"
	if sqlVerb.MatchString(n.Text) {
		what = "this is not one statement"
	}
	r.c.Add(n, "a comma ends a value inside of { } and [ ]: "+what, "put it in quotes: "+quote(n.Text))
}
