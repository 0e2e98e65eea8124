package picture

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// canvas collects shapes.
type canvas struct {
	b strings.Builder
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

// svg closes the picture. The title is its name for a screen reader.
func (c *canvas) svg(class, title string, width, height int) string {
	var b strings.Builder
	role := "img" // screen readers see nothing inside
	if strings.Contains(c.b.String(), "<a ") {
		role = "group"
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" role="%s" width="%d" height="%d" viewBox="0 0 %d %d"><title>%s</title>`,
		attribute(class), role, width, height, width, height, text(title))
	b.WriteString(c.b.String())
	b.WriteString("</svg>\n")
	return b.String()
}

func (c *canvas) rect(class string, x, y, w, h, round int) {
	c.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, attribute(class), x, y, w, h, round)
}

func (c *canvas) text(class string, x, y int, s string) {
	anchor := ""
	if strings.Contains(class, " back") {
		anchor = ` text-anchor="end"`
	}
	c.printf(`<text class="%s" x="%d" y="%d"%s>%s</text>`, attribute(class), x, y, anchor, text(s))
}

// path draws straight lines through points, x and y in turn.
func (c *canvas) path(class, marker string, points ...int) {
	var d strings.Builder
	for i := 0; i+1 < len(points); i += 2 {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		d.WriteString(letter + strconv.Itoa(points[i]) + " " + strconv.Itoa(points[i+1]))
	}
	c.printf(`<path class="%s" d="%s"%s/>`, attribute(class), d.String(), marker)
}

// link begins a link around the following shapes; it is empty without an address.
func (c *canvas) link(address, title string) (end func()) {
	if address == "" {
		c.printf(`<g><title>%s</title>`, text(title))
		return func() { c.printf(`</g>`) }
	}
	c.printf(`<a href="%s"><title>%s</title>`, attribute(address), text(title))
	return func() { c.printf(`</a>`) }
}

// text is data as text of the picture: markup is escaped, and characters that could change the
// direction or end the line are shown as signs.
func text(s string) string { return html.EscapeString(Visible(s)) }

func attribute(s string) string { return html.EscapeString(Visible(s)) }

// Visible replaces characters of control and of direction by signs that show them.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		const pictures = '\u2400' // signs of the control characters
		switch {
		case r < ' ':
			return pictures + r
		case r == '\u007f':
			return '\u2421'
		case r >= '\u0080' && r <= '\u009f', r == '\u061c', r >= '\u200b' && r <= '\u200f', r >= '\u2028' && r <= '\u202e',
			r >= '\u2060' && r <= '\u206f', r == '\ufeff', r == '\ufffd':
			return '\ufffd'
		}
		return r
	}, s)
}

// clip cuts a text at a number of characters.
func clip(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
