package main

import (
	"fmt"
	"html"
	"strings"
)

// The measures of the plot, in pixels.
const (
	plotWidth  = 900
	labelWidth = 330
	barHeight  = 16
	rowHeight  = 22
	titleSpace = 40
)

// plot is an SVG with a bar for each contestant.
func (r *report) plot() string {
	var body strings.Builder
	y := titleSpace
	text := func(x, y int, anchor, style, s string) {
		fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(s))
	}
	text(10, 22, "start", `font-weight="bold"`, "Fraction of the floor of the same round: median, least and most")
	for _, t := range r.tables {
		y += 10
		text(10, y+14, "start", `font-weight="bold"`, t.workload.Name+": "+t.workload.Title)
		y += rowHeight
		scale := t.scale()
		for _, l := range t.ordered() {
			text(labelWidth-8, y+13, "end", "", l.contestant.Name())
			if l.failed != nil {
				text(labelWidth+4, y+13, "start", `fill="#b00"`, "failed")
				y += rowHeight
				continue
			}
			ratio := t.ratio(l)
			x := func(v float64) int { return labelWidth + int(v*scale) }
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", labelWidth, y, max(x(ratio.median)-labelWidth, 1), barHeight, colour(l))
			fmt.Fprintf(&body, `<path d="M%d %dH%d" stroke="#222"/>`+"\n", x(ratio.least), y+barHeight/2, x(ratio.most))
			text(max(x(ratio.most), x(ratio.median))+6, y+13, "start", "", fmt.Sprintf("%.2f", ratio.median))
			y += rowHeight
		}
	}
	y += 20
	text(10, y, "start", `fill="#666"`, r.footer())
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n"+
		`<rect width="%[1]d" height="%[2]d" fill="#fff"/>`+"\n%[3]s</svg>\n", plotWidth, y+14, body.String())
}

// scale is the number of pixels for a ratio of 1, chosen so that the largest fits.
func (t *table) scale() float64 {
	most := 1.0
	for _, l := range t.lines {
		if l.failed == nil {
			most = max(most, t.ratio(l).most)
		}
	}
	return (plotWidth - labelWidth - 60) / most
}

func colour(l *line) string {
	switch {
	case l.place == 0:
		return "#999"
	case strings.HasPrefix(l.contestant.Name(), oursPrefix):
		return "#2a7f62"
	default:
		return "#c9a227"
	}
}
