package picture

import (
	"math"
)

// Bar is one run in a strip.
type Bar struct {
	// Value is its height, such as a duration.
	Value float64
	// Class is its state; the style sheet gives each state a color, and Mark a shape.
	Class string
	// Mark is a character in the bar that says the state without a color; empty means none.
	Mark  string
	Title string
	Link  string
}

const (
	barWidth   = 10
	barGap     = 3
	stripRoom  = 32
	markHeight = 12
)

// Strip draws runs from left to right, the oldest first. The highest bar fills the height.
func Strip(title string, bars []Bar) string {
	c := &canvas{}
	most := 0.0
	for _, b := range bars {
		most = math.Max(most, b.Value)
	}
	for i, b := range bars {
		h := 2
		if most > 0 {
			h = max(h, int(math.Round(b.Value/most*stripRoom)))
		}
		x := i * (barWidth + barGap)
		end := c.link(b.Link, b.Title)
		c.rect("bar "+b.Class, x, stripRoom-h, barWidth, h, 1)
		c.text("mark "+b.Class, x+1, stripRoom+markHeight, b.Mark)
		end()
	}
	return c.svg("strip", title, max(1, len(bars)*(barWidth+barGap)), stripRoom+markHeight+3)
}

// Point is a value of a curve.
type Point struct{ X, Y float64 }

// Series is one curve; an empty Class is the main one.
type Series struct {
	Class  string
	Points []Point
}

// Curve draws values over time or over numbers in a field of the given size, from zero to the greatest.
// The labels are for the ends of its axes.
func Curve(title string, width, height int, series []Series, fromX, toX, toY string) string {
	c := &canvas{}
	minX, maxX, maxY := math.Inf(1), math.Inf(-1), 0.0
	for _, s := range series {
		for _, p := range s.Points {
			minX, maxX, maxY = math.Min(minX, p.X), math.Max(maxX, p.X), math.Max(maxY, p.Y)
		}
	}
	top, bottom := textLine, height-textLine
	c.path("axis", "", 0, bottom, width, bottom)
	c.text("axis", 0, height-3, fromX)
	c.text("axis label back", width, height-3, toX)
	c.text("axis", 0, baseline-6, toY)
	scale := func(value, from, to float64, room int) int {
		if to <= from {
			return 0
		}
		return int(math.Round((value - from) / (to - from) * float64(room)))
	}
	for _, s := range series {
		var line []int
		for _, p := range s.Points {
			line = append(line, scale(p.X, minX, maxX, width), bottom-scale(p.Y, 0, maxY, bottom-top))
		}
		const point = 2
		if len(line) == point { // one value: a dot
			c.rect("curve "+s.Class, line[0], line[1]-1, point, point, 1)
			continue
		}
		if len(line) > 0 {
			c.path("curve "+s.Class, "", line...)
		}
	}
	return c.svg("curve", title, width, height)
}
