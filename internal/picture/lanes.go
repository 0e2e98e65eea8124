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
	axis := Axis{From: from, To: to, Now: now}
	for _, at := range ticks(from, to) {
		axis.Ticks = append(axis.Ticks, Tick{At: at, Text: clock(at)})
	}
	c := &canvas{}
	return c.svg("lanes", title, width, textLine+c.lanes(width, lanes, axis, nil))
}

// lanes draws lanes over an axis, and returns their height. Without stack the spans of a lane are on one line.
func (c *canvas) lanes(width int, lanes []Lane, axis Axis, stack func([]placed) int) (height int) {
	place := func(t time.Time) int {
		if !axis.To.After(axis.From) {
			return nameWidth
		}
		share := float64(t.Sub(axis.From)) / float64(axis.To.Sub(axis.From))
		return nameWidth + int(math.Round(math.Min(1, math.Max(0, share))*float64(width-nameWidth)))
	}
	height = axisHeight
	over := &canvas{}
	for _, l := range lanes {
		var spans []placed
		for _, s := range l.Spans {
			if until := s.until(axis.Now); !until.Before(axis.From) && !s.Begin.After(axis.To) {
				spans = append(spans, placed{Span: s, from: place(s.Begin), to: place(until)})
			}
		}
		lines := 1
		if stack != nil {
			lines = stack(spans)
		}
		end := over.link(l.Link, l.Name)
		over.text("lane "+l.Class, 0, height+baseline-3, clip(l.Name, nameWidth/glyph-1))
		end()
		for _, s := range spans {
			end := over.link(s.Link, s.Title)
			if stack != nil {
				over.mark(s.Span, height+s.line*laneHeight, s.from, s.to, width)
			} else {
				over.span(s.Span, height, s.from, s.to)
			}
			end()
		}
		height += lines * laneHeight
	}
	for _, tick := range axis.Ticks {
		class := "grid"
		if tick.Strong {
			class += " day"
		}
		x := place(tick.At)
		c.path(class, "", x, axisHeight-4, x, height)
		if x+2+len([]rune(tick.Text))*glyph <= width {
			c.text("axis", x+2, baseline-4, tick.Text)
		}
	}
	c.b.WriteString(over.b.String())
	if axis.Now.After(axis.From) && axis.Now.Before(axis.To) {
		x := place(axis.Now)
		c.path("now", "", x, axisHeight-4, x, height)
		c.text("present", min(x+3, width-3*glyph), height+baseline-6, "now")
	}
	return height
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
