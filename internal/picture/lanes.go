package picture

import (
	"math"
	"time"
)

// Lane is a line of spans in a picture of time, such as a worker or a step.
type Lane struct {
	Name  string
	Class string
	Link  string
	Spans []Span
}

// Span is a time with a state. A zero End means that it lasts.
type Span struct {
	Begin, End time.Time
	Class      string
	// Text is drawn in the span if there is room.
	Text  string
	Title string
	Link  string
}

const (
	laneHeight = 22
	nameWidth  = 190
	axisHeight = 22
)

// Lanes draws spans from one time to another in a field of the given width; now marks the present, if
// it lies within. clock says a time at the axis.
func Lanes(title string, width int, lanes []Lane, from, to, now time.Time, clock func(time.Time) string) string {
	c := &canvas{}
	room := width - nameWidth
	place := func(t time.Time) int {
		if !to.After(from) {
			return nameWidth
		}
		share := float64(t.Sub(from)) / float64(to.Sub(from))
		return nameWidth + int(math.Round(math.Min(1, math.Max(0, share))*float64(room)))
	}
	height := axisHeight + len(lanes)*laneHeight
	for _, tick := range ticks(from, to) {
		x := place(tick)
		c.path("grid", "", x, axisHeight-4, x, height)
		c.text("axis", min(x+2, width-8*glyph), baseline-4, clock(tick))
	}
	for i, l := range lanes {
		y := axisHeight + i*laneHeight
		end := c.link(l.Link, l.Name)
		c.text("lane "+l.Class, 0, y+baseline-3, clip(l.Name, nameWidth/glyph))
		end()
		for _, s := range l.Spans {
			c.span(s, y, place(s.Begin), place(s.until(now)))
		}
	}
	if now.After(from) && now.Before(to) {
		c.path("now", "", place(now), axisHeight-4, place(now), height)
	}
	return c.svg("lanes", title, width, height+padding/2)
}

func (s Span) until(now time.Time) time.Time {
	if s.End.IsZero() {
		return now
	}
	return s.End
}

func (c *canvas) span(s Span, y, from, to int) {
	const least = 2
	width := max(least, to-from)
	end := c.link(s.Link, s.Title)
	defer end()
	c.rect("span "+s.Class, from, y+3, width, laneHeight-6, 2)
	if room := width/glyph - 1; len([]rune(s.Text)) <= room {
		c.text("span", from+4, y+baseline-3, s.Text)
	}
}

// ticks are the round times between two times: at most about eight.
func ticks(from, to time.Time) []time.Time {
	const most = 8
	step := time.Millisecond
	for _, s := range []time.Duration{
		time.Second / 100, time.Second / 10, time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
		3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour,
	} {
		if to.Sub(from) <= most*step {
			break
		}
		step = s
	}
	var list []time.Time
	for t := from.Truncate(step); !t.After(to) && len(list) <= 2*most; t = t.Add(step) {
		if !t.Before(from) {
			list = append(list, t)
		}
	}
	return list
}
