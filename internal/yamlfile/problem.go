package yamlfile

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
	File      string
	Line, Col int
	Msg       string
	Hint      string
	Excerpt   string
	// Place is the position in a Go definition, "job bill: step load: chunk.writer"; empty for a
	// file.
	Place string
	// Through names the uses of templates: "through use load in job.yaml:12:3".
	Through string
	// Family is the one of contrib without which the program cannot run the job; usually empty.
	Family string
}

// Error returns "file:line:col: message", the line with a caret and the hint, or "place: message
// (hint)".
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
	if p.Through != "" {
		fmt.Fprintf(&b, "\n%s| %s", strings.Repeat(" ", len(gutter)-2), p.Through)
	}
	return b.String()
}

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

// Problems is all problems of a document, in its order.
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
	doc     *Document
	list    Problems
	seen    map[Problem]int
	more    []map[string]bool
	reports int
}

// NewCollector returns a collector without problems.
func (d *Document) NewCollector() *Collector { return &Collector{doc: d, seen: map[Problem]int{}} }

// Add reports a problem at the node.
func (c *Collector) Add(n *Node, msg, hint string) {
	c.report(c.docOf(n), n, n.Line, n.Col, msg, hint, "")
}

// AddLacking reports a node that needs a family of contrib.
func (c *Collector) AddLacking(n *Node, family, msg, hint string) {
	c.report(c.docOf(n), n, n.Line, n.Col, msg, hint, family)
}

// AddAt reports a problem at byte offset of the node's text.
func (c *Collector) AddAt(n *Node, offset int, msg, hint string) {
	doc := c.docOf(n)
	line, col := doc.locate(n, offset)
	c.report(doc, n, line, col, msg, hint, "")
}

// PositionAt is "file:line:col", or words for a Go definition.
func (c *Collector) PositionAt(n *Node, offset int) string {
	doc := c.docOf(n)
	if doc.Describe != nil {
		return doc.Place(n)
	}
	line, col := doc.clamp(doc.locate(n, offset))
	return fmt.Sprintf("%s:%d:%d", doc.Path, line, col)
}

func (c *Collector) add(line, col int, msg, hint string) {
	c.report(c.doc, nil, line, col, msg, hint, "")
}

// Merge adds the problems of another document.
func (c *Collector) Merge(other *Collector) {
	for _, p := range other.list {
		c.put(p)
	}
}

func (c *Collector) docOf(n *Node) *Document {
	if n.doc != nil {
		return n.doc
	}
	return c.doc
}

func (c *Collector) report(doc *Document, n *Node, line, col int, msg, hint, family string) {
	line, col = doc.clamp(line, col)
	p := Problem{File: doc.Path, Line: line, Col: col, Msg: msg, Hint: hint, Excerpt: doc.lines[line-1], Family: family}
	if n != nil {
		p.Place, p.Through = c.doc.Place(n), n.through()
	}
	c.put(p)
}

func (c *Collector) put(p Problem) {
	c.reports++
	key := p
	key.Through = ""
	i, known := c.seen[key]
	if !known {
		i = len(c.list)
		c.seen[key] = i
		c.list, c.more = append(c.list, p), append(c.more, map[string]bool{})
	}
	if p.Through != c.list[i].Through && c.list[i].Through != "" {
		c.more[i][p.Through] = true
	}
}

// Reports returns the number of problems; a value used twice counts twice.
func (c *Collector) Reports() int { return c.reports }

// Err returns all problems by position, or nil.
func (c *Collector) Err() error {
	if len(c.list) == 0 {
		return nil
	}
	list := slices.Clone(c.list)
	for i, more := range c.more {
		if len(more) > 0 {
			list[i].Through += fmt.Sprintf(", and %d more", len(more))
		}
	}
	isOther := func(p Problem) int {
		if p.File == c.doc.Path {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(isOther(a), isOther(b)), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return list
}
