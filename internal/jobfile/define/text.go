package define

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// The values of a text: string, list, object; literal, which is written unchanged, and quoted.
type (
	literal string
	quoted  string
	list    []any
	object  []pair
	pair    struct {
		key   string
		value any
	}
)

// put adds a key, unless its value is nil, "" or empty.
func (o *object) put(key string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case string:
		if v == "" {
			return
		}
	case list:
		if len(v) == 0 {
			return
		}
	case object:
		if len(v) == 0 {
			return
		}
	}
	*o = append(*o, pair{key, value})
}

func (o *object) flag(key string, on bool) {
	if on {
		o.put(key, "true")
	}
}

const indent = "  "

// text writes an object as YAML.
func (o object) text(b *strings.Builder, margin string) {
	for i, p := range o {
		if i > 0 {
			b.WriteString(margin)
		}
		b.WriteString(scalar(p.key))
		b.WriteString(":")
		below(b, p.value, margin)
	}
}

// below writes the value of a key.
func below(b *strings.Builder, value any, margin string) {
	switch v := value.(type) {
	case object:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteString("\n" + margin + indent)
		v.text(b, margin+indent)
	case list:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteString("\n")
		v.text(b, margin+indent)
	case literal:
		b.WriteString(" " + string(v) + "\n")
	case quoted:
		b.WriteString(" " + quote(string(v)) + "\n")
	case string:
		if block(v) {
			writeBlock(b, v, margin+indent)
			return
		}
		b.WriteString(" " + scalar(v) + "\n")
	}
}

func (l list) text(b *strings.Builder, margin string) {
	for _, item := range l {
		b.WriteString(margin + "-")
		switch v := item.(type) {
		case object:
			if len(v) == 0 {
				b.WriteString(" {}\n")
				continue
			}
			b.WriteString(" ")
			v.text(b, margin+indent)
		case list, literal, quoted:
			below(b, v, margin)
		case string:
			b.WriteString(" " + scalar(v) + "\n")
		}
	}
}

// plain matches texts that YAML takes unchanged.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./$][A-Za-z0-9_./$ -]*$`)

func scalar(text string) string {
	if plain.MatchString(text) && !strings.HasSuffix(text, " ") {
		return text
	}
	return quote(text)
}

// quote writes a text in double quotes.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// blockLine matches lines that a literal block keeps unchanged.
var blockLine = regexp.MustCompile(`^([ -~]*[!-~])?$`)

// block reports whether a text of several lines is more readable as a block.
func block(text string) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || lines[0] == "" || lines[0][0] == ' ' || lines[len(lines)-1] == "" {
		return false
	}
	for _, line := range lines {
		if !blockLine.MatchString(line) {
			return false
		}
	}
	return true
}

func writeBlock(b *strings.Builder, text, margin string) {
	if strings.HasSuffix(text, "\n") {
		b.WriteString(" |\n")
	} else {
		b.WriteString(" |-\n")
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			b.WriteString(margin + line)
		}
		b.WriteString("\n")
	}
}
