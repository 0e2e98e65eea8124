package console

import (
	"errors"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type skipGroupsView struct {
	Groups  []skipGroupLine
	Filters []filterWord
	Windows []choice
	// Read says how far the page came.
	Read        string
	Next, First string
}

type skipGroupLine struct {
	Job                         link
	Step, Phase, Class, Message string
	Link                        string
	Count, Left                 string
	FirstAt, LastAt             moment
	Example                     link
	Executions                  []link
	More                        string
}

func (v ofList) skipGroups() (*page, error) {
	const day = 24 * time.Hour
	windows := map[string]time.Duration{"1d": day, "7d": 7 * day, "30d": 30 * day, "all": 0}
	window := v.text("window")
	reach, known := windows[window]
	if !known {
		if window != "" {
			v.mistake("window", window, "no such window", "1d", "7d", "30d", "all")
		}
		window, reach = "7d", windows["7d"]
	}
	req := operator.SkipGroupsRequest{
		Job: v.text("job"), Step: v.text("step"), Phase: core.Phase(v.text("phase")), Class: v.text("class"), Message: v.text("message"), Before: v.key("before"),
	}
	if reach > 0 {
		req.Since = v.Now().Add(-reach)
	}
	found, err := v.Service.SkipGroups(v.r.Context(), req)
	if wrong, is := errors.AsType[*operator.RequestError](err); is {
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		req.Phase = ""
		found, err = v.Service.SkipGroups(v.r.Context(), req)
	}
	if err != nil {
		return nil, err
	}
	view := skipGroupsView{Read: humanize.Plural(found.Read, "skipped item") + " read"}
	for _, name := range []string{"1d", "7d", "30d", "all"} {
		view.Windows = append(view.Windows, choice{name, v.with("window", name, "before", ""), name == window})
	}
	for _, name := range []string{"job", "step", "phase", "class", "message"} {
		if text := v.text(name); text != "" {
			view.Filters = append(view.Filters, filterWord{name + ": " + clip(text, shortText), v.with(name, "", "before", "")})
		}
	}
	for i := range found.Groups {
		view.Groups = append(view.Groups, v.skipGroupLine(&found.Groups[i]))
	}
	if found.Next != 0 {
		view.Read += ", back to " + v.moment(found.SearchedTo).Text + ": there are earlier ones"
		view.Next = v.with("before", strconv.FormatInt(found.Next, 10))
	}
	if req.Before != 0 {
		view.First = v.with("before", "")
	}
	heading := "Skipped items of all jobs, the most frequent errors first"
	if len(view.Groups) == 0 {
		heading = "No skipped items in this window"
	}
	return &page{Title: "Skipped items", Heading: heading, Body: view}, nil
}

func (v ofList) skipGroupLine(g *operator.SkipGroup) skipGroupLine {
	l := skipGroupLine{
		Job: link{clip(g.Job, shortText), v.jobLink(g.Job)}, Step: clip(g.Step, shortText), Phase: string(g.Phase), Class: clip(g.Class, shortText),
		Message: clip(v.masked(g.Message), lineText), Count: humanize.Count(g.Count), Left: humanize.Count(g.Left), FirstAt: v.moment(g.First), LastAt: v.moment(g.Last),
		Link:    v.with("job", g.Job, "step", g.Step, "phase", string(g.Phase), "class", g.Class, "message", g.Message),
		Example: link{strconv.FormatInt(g.Example, 10), v.Base + "/skips/" + strconv.FormatInt(g.Example, 10)},
	}
	for _, e := range g.Executions {
		l.Executions = append(l.Executions, link{
			id(e.Execution) + " (" + humanize.Count(e.Count) + ")", v.executionLink(e.Execution).Href + "/skips?step=" + query(g.Step) + "&phase=" + query(string(g.Phase)),
		})
	}
	if g.More > 0 {
		l.More = "and " + humanize.Count(g.More) + " more"
	}
	return l
}
