package yamlfile

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	goccy "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/surfin-batch/surfin/internal/smallfile"
)

// yaml.v3 gives no column and often a wrong line; goccy's parser finds the position.
func (d *Document) syntax(c *Collector, err error) {
	var second *errSecond
	if errors.As(err, &second) {
		c.add(second.line, second.col, "there is a second YAML document", "a file has one document: remove the --- line")
		return
	}
	msg, line := yamlMessage(err)
	if name, ok := strings.CutPrefix(msg, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		line, col := d.find("*"+name, max(line, 1))
		c.add(line, col, fmt.Sprintf("YAML reads *%s as an alias, but there is no anchor &%s", name, name), quotesHint)
		return
	}
	col := 0
	if l, cl, ok := place([]byte(d.Text)); ok {
		line, col = min(l, len(d.lines)), cl
	}
	if l, cl, ok := d.openSQL(line); ok && !strings.Contains(msg, "tab character") {
		c.add(l, cl, "this is not YAML: the SQL inside of { } is not in quotes", `quote it: "select ...", or put it in a | block below its key`)
		return
	}
	if col > 0 {
	} else if l, cl, ok := d.question(line); ok && strings.Contains(msg, "did not find expected") {
		c.add(l, cl, "this is not YAML: a ? ends a value inside of { } and [ ]", "put the expression in quotes, or in a | block")
		return
	}
	line, _ = d.clamp(line, 1)
	if col == 0 {
		text := d.lines[line-1]
		col = utf8.RuneCountInString(text[:len(text)-len(strings.TrimLeft(text, " \t"))]) + 1
	}
	c.add(line, col, "this is not YAML: "+msg, syntaxHint(d.lines[line-1], msg))
}

func (d *Document) tooDeep(c *Collector, err error) {
	line, col, found := smallfile.Nested(d.Text, MaxDepth)
	if !found {
		_, line = yamlMessage(err)
		col = 1
	}
	c.add(max(line, 1), col, depthMessage, "")
}

const quotesHint = "an expression with , : # ? ! * { [ or a leading quote goes in quotes, or in a | block"

func syntaxHint(line, msg string) string {
	blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	switch {
	case strings.Contains(blanks, "\t"):
		return "a tab cannot indent: use spaces"
	case strings.Contains(line, "${") && strings.ContainsAny(line[:strings.Index(line, "${")], "{["):
		return "inside of { } and [ ] write ${...} in quotes: \"${params.name}\""
	case arrayType.MatchString(line):
		return "the type of a list is written in words, such as list of string"
	case strings.Contains(msg, "mapping values are not allowed"):
		return "a text with `: ` in it goes in quotes; or the line is indented too far"
	}
	return quotesHint
}

var arrayType = regexp.MustCompile(`:\s*(?:[A-Za-z0-9]+\[\]|\[\][A-Za-z])`)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

func yamlMessage(err error) (msg string, line int) {
	msg = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line, msg = n, msg[len(m[0]):]
		}
	}
	return msg, line
}

// parserDepth is the limit for goccy's parser: its memory grows with the square of the depth.
const parserDepth = 1000

func place(text []byte) (line, col int, ok bool) {
	if _, _, deep := smallfile.Nested(string(text), parserDepth); deep {
		return 0, 0, false
	}
	defer func() {
		if recover() != nil { // only a second opinion: without it the line of yaml.v3 is used
			ok = false
		}
	}()
	_, err := parser.ParseBytes(text, 0)
	var syntax *goccy.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		return 0, 0, false
	}
	return syntax.Token.Position.Line, syntax.Token.Position.Column, true
}

// question finds a `?` that yaml.v3 takes as a key, unlike goccy's parser: `{a: item.x ?? 0}`.
func (d *Document) question(from int) (line, col int, ok bool) {
	const lines = 20
	for i := max(from-1, 0); i < min(from+lines, len(d.lines)); i++ {
		open := strings.IndexAny(d.lines[i], "{[")
		if open < 0 {
			continue
		}
		if at := strings.IndexByte(d.lines[i][open:], '?'); at >= 0 {
			return i + 1, utf8.RuneCountInString(d.lines[i][:open+at]) + 1, true
		}
	}
	return 0, 0, false
}

var flowSQL = regexp.MustCompile(`(?i)[{\[][^"']*?[\w-]+:\s+((?:select|insert\s+into|update|delete\s+from|with|merge\s+into|create\s+\w+|replace\s+into)\s)`)

func (d *Document) openSQL(line int) (at, col int, ok bool) {
	for i := min(line+1, len(d.lines)) - 1; i >= max(line-2, 0); i-- {
		if m := flowSQL.FindStringSubmatchIndex(d.lines[i]); m != nil {
			return i + 1, utf8.RuneCountInString(d.lines[i][:m[2]]) + 1, true
		}
	}
	return 0, 0, false
}

func (d *Document) find(text string, from int) (line, col int) {
	for i := from - 1; i < len(d.lines); i++ {
		if at := strings.Index(d.lines[i], text); at >= 0 {
			return i + 1, utf8.RuneCountInString(d.lines[i][:at]) + 1
		}
	}
	return from, 1
}
