package picture

import (
	"cmp"
	"slices"
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
	return c.svg("lanes calendar", title, width, textLine+c.lanes(width, lanes, axis, stack))
}

// placed is a span from one point of the axis to another, on a line of its lane.
type placed struct {
	Span
	from, to, line int
}

// stack puts spans that would hide each other on different lines, as long as there are few, and returns their number.
func stack(spans []placed) (lines int) {
	const most = 4
	slices.SortStableFunc(spans, func(a, b placed) int { return cmp.Compare(a.from, b.from) })
	var ends []int
	for i := range spans {
		s := &spans[i]
		s.line = slices.IndexFunc(ends, func(end int) bool { return end <= s.from })
		switch {
		case s.line >= 0:
		case len(ends) < most:
			s.line, ends = len(ends), append(ends, 0)
		default:
			s.line = slices.Index(ends, slices.Min(ends))
		}
		wide := max(leastMark, s.to-s.from)
		if size := len([]rune(s.Text)) * glyph; size == glyph && size+4 > wide {
			wide += glyph
		}
		ends[s.line] = max(ends[s.line], s.from+wide)
	}
	return max(1, len(ends))
}

// leastMark is the width of the shortest span.
const leastMark = 3

// mark draws a span, with its mark inside, or after it if there is no room.
func (c *canvas) mark(s Span, y, from, to, width int) {
	wide := max(leastMark, to-from)
	from = min(from, width-leastMark)
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
