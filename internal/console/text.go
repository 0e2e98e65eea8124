package console

import (
	"bytes"
	"errors"
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Lengths at which texts from data are cut. Their own page shows them as a whole.
const (
	shortText = 80   // a value in a table
	lineText  = 240  // an error in a table
	wholeText = 1e6  // on their own page
	longList  = 1000 // of a page
)

// clip is a text from data in one line, with signs for characters of control and direction.
func clip(text string, most int) string {
	const widest = 4 // bytes of a character
	if len(text) > 16*most*widest {
		text = text[:16*most*widest] + "…" // a megabyte is not walked over to show its first line
	}
	return humanize.Clip(picture.Visible(humanize.OneLine(text)), most)
}

// whole is a text from data with its lines.
func whole(text string) string {
	cut := ""
	if len(text) > wholeText {
		text, cut = text[:wholeText], "… (cut: the text has "+humanize.Count(len(text))+" bytes)"
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(picture.Visible(strings.TrimSuffix(line, "\r")), tabSign, "\t")
	}
	return strings.Join(lines, "\n") + cut
}

// inert is the last step of every page, whatever its template shows: characters of control and of
// direction become signs, and secrets are masked in texts and attributes.
func inert(page []byte, mask func(text string) string) []byte {
	page = visible(page)
	if mask == nil {
		return page
	}
	var out bytes.Buffer
	out.Grow(len(page))
	for text := string(page); text != ""; {
		open := strings.IndexByte(text, '<')
		if open < 0 {
			open = len(text)
		}
		out.WriteString(maskedText(text[:open], mask))
		text = text[open:]
		end := tagEnd(text)
		maskAttributes(&out, text[:end], mask)
		text = text[end:]
	}
	return out.Bytes()
}

// tagEnd is the length of the tag at the beginning: a > in a quoted value does not end it.
func tagEnd(text string) int {
	quoted := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			return i + 1
		}
	}
	return len(text)
}

func maskAttributes(out *bytes.Buffer, tag string, mask func(text string) string) {
	for value := false; ; value = !value {
		part, rest, more := strings.Cut(tag, `"`)
		if value {
			part = maskedText(part, mask)
		}
		out.WriteString(part)
		if !more {
			return
		}
		out.WriteByte('"')
		tag = rest
	}
}

func maskedText(text string, mask func(text string) string) string {
	const short = 3 // no secret is that short
	if len(text) <= short {
		return text
	}
	plain := text
	if strings.IndexByte(text, '&') >= 0 {
		plain = html.UnescapeString(text)
	}
	if hidden := mask(plain); hidden != plain {
		return html.EscapeString(hidden)
	}
	return text
}

// visible is picture.Visible for a page: its line ends stay.
func visible(page []byte) []byte {
	if isPlain(page) {
		return page
	}
	lines := bytes.Split(page, []byte("\n"))
	for i, line := range lines {
		if !isPlain(line) {
			lines[i] = []byte(strings.ReplaceAll(picture.Visible(string(line)), tabSign, "\t"))
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// tabSign is how picture.Visible shows a tab, which is not a sign in a page.
const tabSign = "\u2409"

func isPlain(text []byte) bool {
	for _, c := range text {
		if c >= '\u007f' || c < ' ' && c != '\t' && c != '\n' {
			return false
		}
	}
	return true
}

// query is a text as a value in the query of an address.
func query(text string) string { return url.QueryEscape(text) }

// errForOperators is the answer to a viewer who asks for the acts of others.
var errForOperators = errors.New("the audit is for operators: use the token of one (api.operator_tokens.NAME), or ask for that role")

// errOnlyOperators is the answer to a viewer who asks for a form.
var errOnlyOperators = errors.New("this is for operators: sign in with the token of one, or ask for that role")

func id(of core.JobExecutionID) string { return strconv.FormatInt(int64(of), 10) }
