package strict

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing wrong with a document.
type Problem struct {
	// File is the path as it was given.
	File string
	// Line and Col are 1-based; Col counts characters.
	Line, Col int
	// Msg says what is wrong.
	Msg string
	// Hint says what would be right; it may be empty.
	Hint string
	// Excerpt is the line of the file.
	Excerpt string
	// Place says where it is in a definition that was made in Go, where a line tells
	// nothing: "job bill: step load: chunk.writer". It is empty for a file.
	Place string
}

// Error returns "file:line:col: message", the line with a caret, and the hint; of a
// definition made in Go "place: message (hint)".
func (p Problem) Error() string {
	if p.Place != "" {
		return p.inGo()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s", p.File, p.Line, p.Col, p.Msg)
	gutter := fmt.Sprintf("%5d | ", p.Line)
	line, caret := clip(p.Excerpt, p.Col)
	fmt.Fprintf(&b, "\n%s%s\n%s| %s^", gutter, line, strings.Repeat(" ", len(gutter)-2), caret)
	if p.Hint != "" {
		b.WriteString(" " + p.Hint)
	}
	return b.String()
}

// byLine is what messages of files say of other places in them.
var byLine = regexp.MustCompile(`,? in line \d+`)

func (p Problem) inGo() string {
	msg := byLine.ReplaceAllString(p.Msg, "")
	last := p.Place[strings.LastIndexAny(p.Place, " .")+1:] // a message may begin with the key
	text := p.Place + ": " + strings.TrimPrefix(msg, last+": ")
	if hint := byLine.ReplaceAllString(p.Hint, ""); hint != "" && hint == p.Hint {
		text += " (" + hint + ")"
	}
	return text
}

// clip shortens a long line around column col, and answers the blanks that bring
// a caret below that column (tabs stay tabs).
func clip(line string, col int) (shown, blanks string) {
	const maxRunes, before = 120, 60
	runes := []rune(line)
	for i, r := range runes {
		if r != '\t' && !strconv.IsPrint(r) {
			runes[i] = '\uFFFD'
		}
	}
	at := min(max(col-1, 0), len(runes))
	if len(runes) > maxRunes && at > before {
		runes = append([]rune("…"), runes[at-before:]...)
		at = before + 1
	}
	if len(runes) > maxRunes {
		runes = append(slices.Clone(runes[:maxRunes]), '…')
	}
	return string(runes), strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(runes[:at]))
}

// Problems is everything wrong with a document, in its order. It is never empty
// where it is returned as an error.
type Problems []Problem

// Error returns all problems, one below the other.
func (ps Problems) Error() string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = p.Error()
	}
	return strings.Join(parts, "\n")
}

// Collector gathers the problems of one document. It is not safe for concurrent
// use.
type Collector struct {
	doc  *Document
	list Problems
	seen map[Problem]bool
	// reports counts the problems, with those that were reported before: a value that is used
	// twice is wrong twice.
	reports int
}

// NewCollector returns a collector without problems.
func (d *Document) NewCollector() *Collector { return &Collector{doc: d, seen: map[Problem]bool{}} }

// Add reports a problem at the node.
func (c *Collector) Add(n *Node, msg, hint string) {
	c.report(n.Line, n.Col, msg, hint, c.doc.Place(n))
}

// AddAt reports a problem at byte offset of the node's text.
func (c *Collector) AddAt(n *Node, offset int, msg, hint string) {
	line, col := c.doc.locate(n, offset)
	c.report(line, col, msg, hint, c.doc.Place(n))
}

func (c *Collector) add(line, col int, msg, hint string) { c.report(line, col, msg, hint, "") }

func (c *Collector) report(line, col int, msg, hint, place string) {
	line, col = c.doc.clamp(line, col)
	c.reports++
	p := Problem{File: c.doc.Path, Line: line, Col: col, Msg: msg, Hint: hint, Excerpt: c.doc.lines[line-1], Place: place}
	if !c.seen[p] {
		c.seen[p] = true
		c.list = append(c.list, p)
	}
}

// Reports returns how many problems were reported so far, the same one twice where a value
// is used twice.
func (c *Collector) Reports() int { return c.reports }

// Err returns all problems by position, or nil.
func (c *Collector) Err() error {
	if len(c.list) == 0 {
		return nil
	}
	list := slices.Clone(c.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return list
}
