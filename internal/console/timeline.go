package console

import (
	"cmp"
	"errors"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type timelineView struct {
	head
	Picture  template.HTML
	Critical string
	Omitted  string
	Spans    []spanLine
	// Cut: only the first lanes are drawn. Listed: only some spans are in the table; Partitions has the others.
	Cut, Listed string
	Partitions  string
}

type spanLine struct {
	Name, Kind string
	Attempt    string
	State      statusView
	Worker     string
	Started    moment
	Ended      moment
	Took       string
	Rows       string
}

const (
	timelineWidth = 1100
	mostLanes     = 120
	mostSpans     = 250
)

func (v ofExecution) timeline() (*page, error) {
	shown, h, err := v.tab("timeline", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	t, err := v.Service.Timeline(v.r.Context(), operator.TimelineRequest{Execution: shown.ID})
	if err != nil {
		return nil, err
	}
	view := timelineView{head: h, Critical: wording.CriticalPath(t), Omitted: wording.Omitted(t)}
	lanes := v.lanes(t)
	if len(lanes) > mostLanes {
		view.Cut = "The picture has the first " + humanize.Count(mostLanes) + " of " + humanize.Count(len(lanes)) + " lanes."
		lanes = lanes[:mostLanes]
	}
	view.Picture = v.drawLanes(t, lanes)
	listed := listedSpans(t.Spans)
	for _, s := range listed {
		view.Spans = append(view.Spans, v.spanLine(s))
	}
	if n := len(t.Spans); len(listed) < n {
		view.Listed = "The table has " + humanize.Count(len(listed)) + " of " + humanize.Count(n) + " spans."
		view.Partitions = v.executionLink(shown.ID).Href + "/parts"
	}
	for i := range t.Lanes {
		view.Spans = append(view.Spans, v.laneLine(&t.Lanes[i]))
	}
	return tabPage(shown, "timeline", view), nil
}

// listedSpans are all spans if they are few; otherwise partitions give way.
func listedSpans(spans []operator.Span) []*operator.Span {
	others := 0
	for i := range spans {
		if spans[i].Kind != operator.SpanPart {
			others++
		}
	}
	var list []*operator.Span
	parts := mostSpans - min(others, mostSpans)
	for i := range spans {
		if s := &spans[i]; len(list) < mostSpans && (s.Kind != operator.SpanPart || parts > 0) {
			list = append(list, s)
			if s.Kind == operator.SpanPart {
				parts--
			}
		}
	}
	return list
}

// shortTimeline is the time line of the first screen.
type shortTimeline struct {
	drawn    template.HTML
	critical string
}

func (t shortTimeline) size() int { return len(t.drawn) + len(t.critical) }

// shortTimeline draws attempts and steps.
func (v ofExecution) shortTimeline(of *operator.Inspection) (shortTimeline, error) {
	t, err := v.Service.Timeline(v.r.Context(), operator.TimelineRequest{Of: of})
	if err != nil || len(t.Spans) == 0 {
		return shortTimeline{}, err
	}
	const few = 40
	lanes := slices.DeleteFunc(v.lanes(t), func(l picture.Lane) bool { return l.Class != "step" && l.Class != "attempt" })
	return shortTimeline{v.drawLanes(t, lanes[:min(few, len(lanes))]), wording.CriticalPath(t)}, nil
}

func (v ofExecution) drawLanes(t *operator.Timeline, lanes []picture.Lane) template.HTML {
	form := "15:04:05"
	switch whole := t.To.Sub(t.From); {
	case whole > 24*time.Hour:
		form = "01-02 15:04"
	case whole < 8*time.Second: // ticks are less than a second apart
		form = "15:04:05.00"
	}
	clock := func(at time.Time) string { return at.In(v.zone).Format(form) }
	now := time.Time{}
	to := t.To
	if t.Lasts {
		now = t.To
	}
	if !to.After(t.From) {
		to = t.From.Add(time.Millisecond)
	}
	return template.HTML(picture.Lanes("The time line of job "+t.JobName, timelineWidth, lanes, t.From, to, cmpTime(now, to), clock)) //nolint:gosec // the picture escapes its texts
}

// cmpTime is now, or the end of an instance that is over.
func cmpTime(now, end time.Time) time.Time {
	if now.IsZero() {
		return end
	}
	return now
}

// lanes are one for each attempt, each step with its rounds, and each worker of the parts of a step.
func (v ofExecution) lanes(t *operator.Timeline) []picture.Lane {
	var list []picture.Lane
	at := map[string]int{}
	add := func(key, name, class string, s picture.Span) {
		i, known := at[key]
		if !known {
			i = len(list)
			at[key], list = i, append(list, picture.Lane{Name: name, Class: class})
		}
		list[i].Spans = append(list[i].Spans, s)
	}
	names := map[core.StepExecutionID]string{}
	for i := range t.Spans {
		s := &t.Spans[i]
		drawn := picture.Span{Begin: s.Started, End: s.Ended, Class: spanClass(s), Title: spanTitle(s)}
		switch s.Kind {
		case operator.SpanAttempt:
			drawn.Text, drawn.Link = s.Name, v.executionLink(s.Execution).Href
			add("attempt", "attempts", "attempt", drawn)
		case operator.SpanStep:
			names[s.Step] = s.Name
			drawn.Link = v.executionLink(s.Execution).Href + "?element=" + query(cmp.Or(s.Element, s.Name)) + "#element"
			add("step "+s.Flow+" "+s.Name, s.Name, "step", drawn)
		case operator.SpanWait:
			if name, known := names[s.Step]; known {
				add("step "+s.Flow+" "+name, name, "step", drawn)
			}
		case operator.SpanPart, operator.SpanTask, operator.SpanChild:
			worker := wording.Worker(s.Process, s.Worker)
			if s.Kind == operator.SpanChild {
				drawn.Link = v.executionLink(s.Execution).Href
			}
			drawn.Text = s.Name
			add("of "+strconv.FormatInt(int64(s.Of), 10)+worker, cmp.Or(worker, names[s.Of]), "worker", drawn)
		}
	}
	return append(list, v.aggregated(t)...)
}

// aggregated are the lanes that stand for many parts.
func (v ofExecution) aggregated(t *operator.Timeline) []picture.Lane {
	var list []picture.Lane
	for i := range t.Lanes {
		l := &t.Lanes[i]
		class := "completed"
		if l.Statuses[string(core.StatusFailed)] > 0 {
			class = "failed"
		}
		name := cmp.Or(wording.Worker(l.Process, l.Worker), l.Name)
		list = append(list, picture.Lane{Name: name, Class: "worker", Spans: []picture.Span{{
			Begin: l.Started, End: l.Ended, Class: class + " many", Text: humanize.Count(l.Count), Title: l.Name + ": " + wording.LaneStatuses(l),
		}}})
	}
	return list
}

func spanClass(s *operator.Span) string {
	switch {
	case s.Kind == operator.SpanWait:
		return "wait"
	case s.Lost || s.Returned:
		return "abandoned"
	case slices.Contains(core.Statuses(), core.Status(s.Status)):
		return stateOf(core.Status(s.Status)).class
	}
	return stateView(s.Status).Class
}

func spanTitle(s *operator.Span) string {
	text := s.Name + ": " + wording.SpanState(s) + ", " + humanize.Seconds(s.Duration)
	if worker := wording.Worker(s.Process, s.Worker); worker != "" {
		text += ", " + worker
	}
	if s.Read > 0 {
		text += ", " + humanize.Count(s.Read) + " read"
	}
	return text
}

func (v ofExecution) spanLine(s *operator.Span) spanLine {
	l := spanLine{
		Name: clip(s.Name, shortText), Kind: string(s.Kind), Attempt: strconv.Itoa(s.Attempt), State: statusView{wording.SpanState(s), spanClass(s)},
		Worker: clip(wording.Worker(s.Process, s.Worker), shortText), Started: v.moment(s.Started), Ended: v.moment(s.Ended), Took: humanize.Seconds(s.Duration),
	}
	if l.State.Class == "wait" {
		l.State.Class = "parked"
	}
	if s.Round > 0 {
		l.Name += " (round " + strconv.Itoa(s.Round) + ")"
	}
	if s.Longest {
		l.Kind += ", one of the longest"
	}
	if s.Read+s.Written > 0 {
		l.Rows = humanize.Count(s.Read) + " read, " + humanize.Count(s.Written) + " written"
	}
	return l
}

func (v ofExecution) laneLine(s *operator.Lane) spanLine {
	return spanLine{
		Name: clip(s.Name, shortText), Kind: humanize.Plural(s.Count, string(s.Kind)), Attempt: strconv.Itoa(s.Attempt), State: statusView{wording.LaneStatuses(s), "none"},
		Worker: clip(wording.Worker(s.Process, s.Worker), shortText), Started: v.moment(s.Started), Ended: v.moment(s.Ended), Took: humanize.Seconds(s.Busy),
		Rows: humanize.Count(s.Read) + " read, " + humanize.Count(s.Written) + " written",
	}
}

type throughputView struct {
	head
	Curves []curveView
	// Idle names the steps that moved no row.
	Idle string
	Cut  bool
}

type curveView struct {
	Name    string
	Rate    template.HTML
	Rows    template.HTML
	Samples string
}

func (v ofExecution) throughput() (*page, error) {
	shown, h, err := v.tab("throughput", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	req := operator.SeriesRequest{Execution: shown.ID, Step: v.text("step")}
	series, err := v.Service.Series(v.r.Context(), req)
	if wrong, is := errors.AsType[*operator.RequestError](err); is {
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		series, err = v.Service.Series(v.r.Context(), operator.SeriesRequest{Execution: shown.ID})
	}
	if err != nil {
		return nil, err
	}
	view := throughputView{head: h, Cut: series.Cut}
	if w := series.Whole; w != nil && len(series.Steps) > 1 {
		view.Curves = append(view.Curves, v.curves(w, "all steps"))
	}
	const most = 50
	var idle []string
	for i := range series.Steps {
		switch s := &series.Steps[i]; {
		case len(s.Points) == 0 || len(view.Curves) == most:
		case moved(s):
			view.Curves = append(view.Curves, v.curves(s, "step "+s.Step))
		default:
			idle = append(idle, s.Step)
		}
	}
	if len(idle) > 0 {
		view.Idle = "No rows: " + clip(strings.Join(idle, ", "), most*shortText) + "."
	}
	return tabPage(shown, "throughput", view), nil
}

func moved(s *operator.StepSeries) bool {
	last := s.Points[len(s.Points)-1]
	return last.Read > 0 || last.Written > 0
}

func (v ofExecution) curves(s *operator.StepSeries, name string) curveView {
	const width, height = 520, 150
	var rate, read, written []picture.Point
	most := 0.0
	for _, p := range s.Points {
		x := p.At.Sub(s.Started).Seconds()
		most = max(most, p.RowsPerSecond)
		rate = append(rate, picture.Point{X: x, Y: p.RowsPerSecond})
		read, written = append(read, picture.Point{X: x, Y: float64(p.Read)}), append(written, picture.Point{X: x, Y: float64(p.Written)})
	}
	view := curveView{Name: clip(name, shortText), Samples: humanize.Plural(len(s.Points), "sample")}
	if len(s.Points) == 0 {
		return view
	}
	last := s.Points[len(s.Points)-1]
	clock := v.moment
	if last.At.Sub(s.Started) < 2*time.Second {
		clock = v.instant
	}
	if took := last.At.Sub(s.Started).Seconds(); took > 0 {
		view.Samples += "; fastest " + perSecond(most) + ", on average " + perSecond(float64(cmp.Or(last.Read, last.Written))/took)
	}
	from, to := clock(s.Started).Text, clock(last.At).Text
	view.Rate = template.HTML(picture.Curve("Rows a second of "+name, width, height, []picture.Series{{Points: rate}}, from, to, perSecond(most))) //nolint:gosec // the picture escapes its texts
	rows := []picture.Series{{Class: "read", Points: read}, {Class: "written", Points: written}}
	view.Rows = template.HTML(picture.Curve("Rows of "+name, width, height, rows, from, to, humanize.Count(max(last.Read, last.Written)))) //nolint:gosec // the picture escapes its texts
	return view
}
