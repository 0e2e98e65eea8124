package wording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/surfin-batch/surfin/internal/operator"
)

// LogLine is a line of a log for people; further lines of its message are indented.
func LogLine(l operator.LogLineView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s ", l.At.UTC().Format("2006-01-02 15:04:05.000Z"), l.Level)
	if l.Step != "" {
		b.WriteString("[" + l.Step)
		if l.Part != "" {
			b.WriteString(":" + l.Part)
		}
		b.WriteString("] ")
	}
	first, rest, several := strings.Cut(LogText(l), "\n")
	b.WriteString(first)
	if several {
		b.WriteString("\n    " + strings.ReplaceAll(rest, "\n", "\n    "))
	}
	return b.String()
}

// LogText is the text of a line: its message with its attributes after the first line.
func LogText(l operator.LogLineView) string {
	text, rest, several := strings.Cut(plain(l.Message), "\n")
	if l.Event == "cause" {
		text = "caused by: " + text
	}
	for _, a := range attributes(l.Attributes) {
		if l.Event != "cause" || !strings.HasPrefix(a, "type=") { // the Go type is for programs
			text += " " + a
		}
	}
	if several {
		text += "\n" + rest
	}
	return text
}

// LogLeftOut counts the lines that are left out, or is "".
func LogLeftOut(l operator.LogLeftOut) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{l.Repeated, "repeated"}, {l.Size, "beyond the bound of a log"}, {l.Lost, "not stored in time"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "lines left out: " + strings.Join(parts, ", ")
}

// plain shows control characters as signs: a terminal would obey them.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < ' ':
			return '\u2400' + r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// attributes are the values of an object in its order, as KEY=VALUE.
func attributes(object json.RawMessage) (list []string) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return list
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return list
		}
		list = append(list, fmt.Sprint(key)+"="+attribute(value))
	}
	return list
}

func attribute(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return plain(string(value))
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r == '"' || r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
