package console

import (
	"context"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type executionView struct {
	head
	// Sentences are the paragraphs of explain.
	Sentences [][]string
	Next      []command
	Flow      template.HTML
	// Wide: the picture needs the width of the page.
	Wide    bool
	Outline []outlineLine
	// FlowProblem is why there is no picture.
	FlowProblem string
	Steps       []stepLine
	Element     *elementView
	Timeline    template.HTML
	Critical    string
	Running     []progressLine
	// Error is the execution's own, as a whole.
	Error string
}

// head is the part of all pages of one execution.
type head struct {
	ID       string
	Job      link
	Status   statusView
	Exit     string
	Attempts []attemptLink
	Attempt  int
	Params   []paramView
	Created  moment
	Started  moment
	Ended    moment
	Took     string
	// Typical is the usual duration: empty without executions to compare with.
	Typical   string
	Owner     string
	Lease     string
	File      string
	Parent    *link
	RedriveOf *link
	Redrives  []link
	Gate      string
	Waiting   string
	Tabs      []tabLink
	Instance  link
}

type attemptLink struct {
	link
	Status statusView
	Here   bool
}

type paramView struct {
	Name, Value string
	Identifying bool
}

type progressLine struct {
	Execution link
	Job       link
	Step      string
	Status    statusView
	Read      string
	Written   string
	Rate      string
	Parts     string
	Took      string
	// Percent is from 0 to 100; Left is empty if unknown.
	Percent float64
	Known   bool
	Left    string
	Waits   string
	// Note follows the status.
	Note string
}

func (v ofExecution) execution() (*page, error) {
	ctx := v.r.Context()
	all, err := v.Service.Inspect(ctx, operator.InspectRequest{Execution: v.executionID(), Before: v.earlier.inspection()})
	if err != nil {
		return nil, err
	}
	v.earlier.remember(&all.Known)
	shown, explained := all.Execution, all.Explanation
	view := executionView{Error: shown.Error, Running: v.progressLines(all.Progress)}
	if view.head, err = v.head(shown, ""); err != nil {
		return nil, err
	}
	for _, paragraph := range wording.Explanation(explained) {
		view.Sentences = append(view.Sentences, strings.Split(strings.TrimSpace(v.masked(paragraph)), "\n"))
	}
	for _, c := range v.Commands.Explained(explained) {
		view.Next = append(view.Next, command{c.Order, c.To, v.masked(c.Command), v.masked(c.Text), targetOf(v.visit, c.Action)})
	}
	view.Steps = v.stepLines(shown, explained)
	v.flow(&view, all)
	short, err := kept(v.earlier, v.Now(), "timeline", all.Stage, timelineTime, func() (shortTimeline, error) { return v.shortTimeline(all) })
	if err != nil {
		return nil, err
	}
	view.Timeline, view.Critical = short.drawn, short.critical
	p := &page{Title: title(&shown.Execution), Heading: headingOf(&shown.Execution), Body: view, Live: follows(&shown.Execution)}
	if of := view.RedriveOf; of != nil {
		p.Source = &link{"execution " + id(shown.RedriveOf), of.Href}
	}
	if n := len(view.Attempts); n > 0 && !view.Attempts[n-1].Here {
		newest := view.Attempts[n-1]
		p.Heading += ": execution " + newest.Text + " followed it, and is " + newest.Status.Word
	}
	if len(all.Parted()) > 0 {
		p.Pace = partedPace
	}
	return p, nil
}

const (
	// timelineTime is how long the picture of the time line stays while no step begins or ends.
	timelineTime = 5 * time.Second
	// partedPace is how often an execution with parts is read for its watchers: each of them may be looked at.
	partedPace = 2 * time.Second
)

// title begins with the job and how it ended, since a tab shows little of it.
func title(e *operator.Execution) string {
	return clip(e.JobName, shortText) + " " + id(e.ID) + ": " + string(e.Status)
}

// follows are the topics of an execution.
func follows(e *operator.Execution) string {
	return "execution:" + id(e.ID) + ",step:" + id(e.ID) + ",progress:" + id(e.ID)
}

func headingOf(e *operator.Execution) string {
	return "Execution " + id(e.ID) + " of job " + clip(e.JobName, shortText) + " " + stateOf(e.Status).says
}

func (v *visit) executionID() core.JobExecutionID { return core.JobExecutionID(v.number("execution")) }

func (v *visit) executionLink(of core.JobExecutionID) link {
	return link{id(of), v.Base + "/executions/" + id(of)}
}

func (v *visit) jobLink(name string) string { return v.Base + "/jobs/" + url.PathEscape(name) }

// head is the part that all pages of an execution have; tab is the current one.
func (v ofExecution) head(e *operator.ExecutionView, tab string) (head, error) {
	ctx := v.r.Context()
	h := head{
		ID: id(e.ID), Job: link{clip(e.JobName, shortText), v.jobLink(e.JobName)}, Status: status(e.Status), Exit: exitOf(e.Status, e.ExitCode), Attempt: e.Attempt,
		Created: v.moment(e.CreatedAt), Started: v.moment(e.StartedAt), Ended: v.moment(e.EndedAt), File: e.File, Gate: e.Gate,
		Instance: link{strconv.FormatInt(int64(e.InstanceID), 10), v.Base + "/executions?instance=" + strconv.FormatInt(int64(e.InstanceID), 10)},
	}
	if !e.StartedAt.IsZero() {
		h.Took = humanize.Seconds(e.Duration)
	}
	for _, p := range operator.Given(e.Params.Parameters) {
		h.Params = append(h.Params, paramView{clip(p.Name, shortText), clip(v.masked(p.Text()), lineText), p.Identifying})
	}
	if o := e.Owner; o != nil {
		h.Owner, h.Lease = wording.Process(o.PID, clip(o.Host, shortText)), wording.Lease(o, v.Now())
	}
	if e.Waiting != nil {
		h.Waiting = v.Commands.Parked(e.Waiting)
	}
	if e.Parent != 0 {
		h.Parent = &link{"execution " + id(e.Parent), v.executionLink(e.Parent).Href}
	}
	if e.RedriveOf != 0 {
		h.RedriveOf = &link{clip(strings.TrimPrefix(wording.RedriveOf(e.Params.Parameters), "redrive of "), lineText), v.executionLink(e.RedriveOf).Href}
	}
	for _, r := range e.Redrives {
		h.Redrives = append(h.Redrives, link{wording.Redrive(r, e.ID), v.executionLink(r.Execution).Href})
	}
	h.Tabs = v.tabs(e, tab)
	const attemptsTime, typicalTime = 10 * time.Second, time.Minute
	var err error
	if h.Attempts, err = kept(v.earlier, v.Now(), "attempts", e.Status, attemptsTime, func() ([]attemptLink, error) { return v.attempts(ctx, e) }); err != nil {
		return h, err
	}
	h.Typical, err = kept(v.earlier, v.Now(), "typical", e.ID, typicalTime, func() (string, error) { return v.typical(ctx, &e.Execution) })
	return h, err
}

// exitOf is an exit code that says more than the status.
func exitOf(s core.Status, exit string) string {
	if exit == string(s) {
		return ""
	}
	return clip(exit, shortText)
}

func (v ofExecution) attempts(ctx context.Context, e *operator.ExecutionView) ([]attemptLink, error) {
	const most = 20
	page, err := v.Service.List(ctx, operator.ListRequest{Instance: e.InstanceID, Job: e.JobName, Limit: most})
	if err != nil {
		return nil, err
	}
	var list []attemptLink
	for _, one := range slices.Backward(page.Executions) {
		list = append(list, attemptLink{link{strconv.Itoa(one.Attempt), v.executionLink(one.ID).Href}, status(one.Status), one.ID == e.ID})
	}
	return list, nil
}

// typical is the usual duration of the job, or "".
func (v ofExecution) typical(ctx context.Context, of *operator.Execution) (string, error) {
	usual, known, err := v.Service.TypicalDuration(ctx, of)
	if err != nil || !known {
		return "", err
	}
	return humanize.Seconds(usual), nil
}

// tabLink leads to a tab. Count is what it lists, if that is known; Empty pales it.
type tabLink struct {
	choice
	Count string
	Empty bool
}

func (v ofExecution) tabs(of *operator.ExecutionView, shown string) []tabLink {
	counts := map[string]int{"results": len(of.Error) + len(of.Decisions), "parts": 0, "skips": 0, "tasks": 0, "throughput": 0}
	for i := range of.Steps {
		s := &of.Steps[i]
		if s.Partitions != nil {
			counts["parts"] += s.Partitions.Total
		}
		counts["skips"] += int(s.Skipped - s.SkippedUndone)
		for name, has := range map[string]bool{"tasks": s.Tasks != nil || s.Child != 0, "throughput": s.Read+s.Written > 0, "results": hasResults(s)} {
			if has {
				counts[name]++
			}
		}
	}
	address := v.executionLink(of.ID).Href
	list := []tabLink{{choice: choice{"overview", address, shown == ""}}}
	for _, name := range tabNames() {
		count, known := counts[name]
		link := tabLink{choice{strings.Replace(name, "parts", "partitions", 1), address + "/" + name, shown == name}, "", known && count == 0}
		if name == "parts" || name == "skips" {
			link.Count = some(int64(count))
		}
		list = append(list, link)
	}
	return list
}

// progress are the running steps of all jobs, or of one.
func (v *visit) progress(req operator.ProgressRequest) ([]progressLine, error) {
	running, err := v.Service.Progress(v.r.Context(), req)
	return v.progressLines(running), err
}

// progressLines are running steps.
func (v *visit) progressLines(running []operator.ProgressView) []progressLine {
	var list []progressLine
	for i := range running {
		p := &running[i]
		l := progressLine{
			Execution: v.executionLink(p.Execution), Job: link{clip(p.JobName, shortText), v.jobLink(p.JobName)}, Step: clip(p.Step, shortText),
			Status: status(p.Status), Read: humanize.Count(p.Read), Written: humanize.Count(p.Written), Took: humanize.Seconds(p.Duration),
		}
		if p.PerSecond > 0 {
			l.Rate = perSecond(p.PerSecond)
		}
		l.Parts, l.Note = wording.Work(p), wording.StateNote(p)
		if p.Percent != nil {
			l.Percent, l.Known = min(100, max(0, *p.Percent)), true
		}
		if p.Left != nil {
			l.Left = wording.TimeLeft(p)
		}
		if p.Waiting != nil {
			l.Waits = v.Commands.Parked(p.Waiting)
		}
		list = append(list, l)
	}
	return list
}
