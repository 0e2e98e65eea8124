package picture

import (
	"math"
	"time"
)

// Axis is the time of a picture of lanes.
type Axis struct {
	From, To time.Time
	// Now is drawn as a line, if it lies within.
	Now   time.Time
	Ticks []Tick
}

// Tick is a labelled time of an axis; Strong begins a day.
type Tick struct {
	At     time.Time
	Text   string
	Strong bool
}

// Calendar draws lanes over an axis with given ticks: a day of 23 or 25 hours has its own width.
func Calendar(title string, width int, lanes []Lane, axis Axis) string {
	c := &canvas{}
	room := width - nameWidth
	place := func(t time.Time) int {
		if !axis.To.After(axis.From) {
			return nameWidth
		}
		share := float64(t.Sub(axis.From)) / float64(axis.To.Sub(axis.From))
		return nameWidth + int(math.Round(math.Min(1, math.Max(0, share))*float64(room)))
	}
	height := axisHeight + len(lanes)*laneHeight
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
	for i, l := range lanes {
		y := axisHeight + i*laneHeight
		end := c.link(l.Link, l.Name)
		c.text("lane "+l.Class, 0, y+baseline-3, clip(l.Name, nameWidth/glyph-1))
		end()
		for _, s := range l.Spans {
			if s.until(axis.Now).Before(axis.From) || s.Begin.After(axis.To) {
				continue
			}
			from := place(s.Begin)
			end := c.link(s.Link, s.Title)
			c.mark(s, y, from, place(s.until(axis.Now)), width)
			end()
		}
	}
	if axis.Now.After(axis.From) && axis.Now.Before(axis.To) {
		x := place(axis.Now)
		c.path("now", "", x, axisHeight-4, x, height)
		c.text("now", min(x+3, width-3*glyph), height+baseline-6, "now")
	}
	return c.svg("lanes calendar", title, width, height+textLine)
}

// mark draws a span, with its mark inside, or after it if there is no room.
func (c *canvas) mark(s Span, y, from, to, width int) {
	const least = 3
	wide := max(least, to-from)
	from = min(from, width-least)
	c.rect("span "+s.Class, from, y+3, min(wide, width-from), laneHeight-6, 2)
	switch size := len([]rune(s.Text)) * glyph; {
	case s.Text == "":
	case size+4 <= wide:
		c.text("span", from+3, y+baseline-3, s.Text)
	case len([]rune(s.Text)) == 1 && from+wide+glyph <= width:
		c.text("mark "+s.Class, from+wide+1, y+baseline-3, s.Text)
	}
}

// HourTicks are times between two times at which a clock of a zone shows a multiple of so many hours. The first one
// of a day has the day's name.
func HourTicks(from, to time.Time, zone *time.Location, hours int) []Tick {
	const quarter, most = 15 * time.Minute, 200
	var list []Tick
	for t := from.Truncate(quarter); !t.After(to) && len(list) < most; t = t.Add(quarter) {
		local := t.In(zone)
		if t.Before(from) || local.Minute() != 0 || local.Hour()%max(1, hours) != 0 {
			continue
		}
		before := t.Add(-quarter).In(zone)
		tick := Tick{At: t, Text: local.Format("15:04"), Strong: before.YearDay() != local.YearDay()}
		if tick.Strong {
			tick.Text = local.Format("Mon 2")
		}
		list = append(list, tick)
	}
	return list
}
