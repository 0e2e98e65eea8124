package yamlfile

import (
	"fmt"
	"strings"
)

func (n *Node) through() string {
	var parts []string
	for ; n != nil && n.use != nil; n = n.use.At {
		parts = append(parts, "through "+n.use.What+" in "+n.use.At.Position(""))
	}
	return strings.Join(parts, ", ")
}

// Position is "file:line:col"; path is for a node of no file.
func (n *Node) Position(path string) string {
	if n.doc != nil {
		path = n.doc.Path
	}
	return fmt.Sprintf("%s:%d:%d", path, n.Line, n.Col)
}

// Use returns the use that added the node, or nil.
func (n *Node) Use() *Use { return n.use }

// Document returns the document that the node is written in.
func (n *Node) Document() *Document { return n.doc }

// In is the position for a message about other: "in line 3", with another file's name.
func (n *Node) In(other *Node) string {
	if n.doc == nil || n.doc == other.doc {
		return fmt.Sprintf("in line %d", n.Line)
	}
	return fmt.Sprintf("in line %d of %s", n.Line, n.doc.Path)
}

// Beside returns an empty node of a kind at the position of n.
func (n *Node) Beside(kind Kind) *Node {
	return &Node{Kind: kind, Line: n.Line, Col: n.Col, doc: n.doc, use: n.use}
}

// Plain returns an unquoted scalar at the position of n.
func (n *Node) Plain(text string) *Node {
	made := n.Beside(Scalar)
	made.Text, made.style = text, folded
	return made
}

// WithItems returns the list n with other items.
func (n *Node) WithItems(items []*Node) *Node {
	made := *n
	made.Items = items
	return &made
}

// WithEntries returns the map n with other entries.
func (n *Node) WithEntries(entries []Entry) *Node {
	made := *n
	made.Entries = entries
	return &made
}

// Copy returns a copy added by a use; scalar replaces each copied scalar, also keys that stay
// scalars.
func (n *Node) Copy(use *Use, scalar func(n *Node) *Node) *Node {
	made := *n
	made.use = use
	if n.Kind == Scalar {
		if scalar == nil {
			return &made
		}
		return scalar(&made)
	}
	made.Items, made.Entries = nil, nil
	for _, item := range n.Items {
		made.Items = append(made.Items, item.Copy(use, scalar))
	}
	for _, e := range n.Entries {
		key := e.Key.Copy(use, scalar)
		if key.Kind != Scalar {
			key = e.Key
		}
		made.Entries = append(made.Entries, Entry{Key: key, Value: e.Value.Copy(use, scalar)})
	}
	return &made
}

// Size is the number of values, including keys and itself.
func (n *Node) Size() int {
	size := 1
	for _, item := range n.Items {
		size += item.Size()
	}
	for _, e := range n.Entries {
		size += 1 + e.Value.Size()
	}
	return size
}

// Piece is a part of a composed text.
type Piece struct {
	Text   string
	Offset int
	Pasted bool
}

// Replaced returns a scalar of the pieces; positions are reported at their source.
func (n *Node) Replaced(pieces []Piece) *Node {
	made := *n
	made.Text, made.Empty, made.origin = "", false, &origin{node: n}
	for _, p := range pieces {
		made.origin.spans = append(made.origin.spans, span{len(made.Text), p.Offset, p.Pasted})
		made.Text += p.Text
	}
	return &made
}

// Unquoted returns the scalar without the mark of quotes.
func (n *Node) Unquoted() *Node {
	made := *n
	made.style = plain
	return &made
}

func (n *Node) source(offset int) (*Node, int) {
	for n.origin != nil {
		at := 0
		for _, s := range n.origin.spans {
			switch {
			case s.at > offset:
			case s.pasted:
				at = s.offset
			default:
				at = s.offset + offset - s.at
			}
		}
		n, offset = n.origin.node, at
	}
	return n, offset
}

// HasLine reports whether a line is between n's first and last one.
func (n *Node) HasLine(doc *Document, line int) bool {
	first, last := 0, 0
	n.lines(doc, &first, &last)
	return first > 0 && line >= first && line <= last
}

func (n *Node) lines(doc *Document, first, last *int) {
	if n.doc == doc {
		if *first == 0 || n.Line < *first {
			*first = n.Line
		}
		*last = max(*last, n.Line+strings.Count(strings.TrimRight(n.Text, "\n"), "\n"))
	}
	for _, item := range n.Items {
		item.lines(doc, first, last)
	}
	for _, e := range n.Entries {
		e.Key.lines(doc, first, last)
		e.Value.lines(doc, first, last)
	}
}
