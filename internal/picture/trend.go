package picture

import "math"

// Level is a line across a trend, such as the median.
type Level struct {
	Value float64
	Label string
	Class string
}

const (
	trendWidth  = 8
	trendGap    = 2
	trendRoom   = 84
	trendTop    = 24
	trendLabels = 110
)

// Trend draws runs from left to right, the oldest first, with lines across them. The label of a line
// stands at its end; the highest of bars and lines fills the height.
func Trend(title string, bars []Bar, levels []Level) string {
	c := &canvas{}
	most := 0.0
	for _, b := range bars {
		most = math.Max(most, b.Value)
	}
	for _, l := range levels {
		most = math.Max(most, l.Value)
	}
	height := func(value float64) int {
		if most <= 0 {
			return 0
		}
		return int(math.Round(value / most * trendRoom))
	}
	width := max(1, len(bars)) * (trendWidth + trendGap)
	c.path("axis", "", 0, trendTop+trendRoom, width, trendTop+trendRoom)
	for i, b := range bars {
		const least = 2
		h := max(least, height(b.Value))
		end := c.link(b.Link, b.Title)
		c.rect("bar "+b.Class, i*(trendWidth+trendGap), trendTop+trendRoom-h, trendWidth, h, 1)
		c.text("mark "+b.Class, i*(trendWidth+trendGap), trendTop+trendRoom+markHeight, b.Mark)
		end()
	}
	above := trendTop + trendRoom + textLine
	for _, l := range levels { // from the lowest: labels do not cover each other
		y := trendTop + trendRoom - height(l.Value)
		c.path("level "+l.Class, "", 0, y, width, y)
		above = min(y+4, above-textLine)
		c.text("level", width+4, above, l.Label)
	}
	return c.svg("trend", title, width+trendLabels, trendTop+trendRoom+markHeight+3)
}
