package console

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type failedView struct {
	// Said is the reason.
	Said string
	// Details are single mistakes, Next the possible actions.
	Details []string
	Diff    []string
	Next    []command
	Near    []link
	// Again is when to come again, in seconds.
	Again int
}

// link leads to another page.
type link struct{ Text, Href string }

// command is a purpose and a command line, and the page with the form that does it, if there is one.
type command struct {
	// Order is the position of a thing to do in turn, from 1; 0 for others.
	Order    int
	To, Line string
	// Text replaces Line if no command does it.
	Text string
	target
}

// target is the page of an action. A form acts; others only show.
type target struct {
	Href string
	Form bool
}

// missing is an error for a page that does not exist, with similar ones.
type missing struct {
	what string
	near []link
}

func (m *missing) Error() string { return m.what }

const comeAgain = int(access.RetryAfter / time.Second)

func (v *visit) failed(err error) *page {
	var none *missing
	var refused *operator.Refusal
	var wrong *operator.RequestError
	switch {
	case errors.As(err, &none):
		return failure(http.StatusNotFound, "There is no such page", failedView{Said: none.what, Near: none.near})
	case errors.As(err, &refused):
		return v.refused(refused)
	case errors.As(err, &wrong):
		return failure(http.StatusUnprocessableEntity, "The address is not valid", failedView{Said: wrong.Error(), Near: []link{{"without this value", v.with(wrong.Field, "")}}})
	case errors.Is(err, errForOperators), errors.Is(err, errOnlyOperators):
		return failure(http.StatusForbidden, "Not for viewers", failedView{Said: err.Error()})
	case errors.Is(err, core.ErrNotFound):
		return failure(http.StatusNotFound, "Not found", failedView{Said: v.masked(err.Error()), Near: v.near()})
	case v.isAway(err):
		v.Log.WarnContext(v.r.Context(), "a page of the console could not be shown", "path", v.r.URL.Path, "error", err)
		return failure(http.StatusServiceUnavailable, "The database does not answer", failedView{
			Said: "The database cannot be reached, or did not respond in time. The server's log has details.", Again: comeAgain,
		})
	}
	v.Log.ErrorContext(v.r.Context(), "a page of the console failed", "path", v.r.URL.Path, "error", err)
	return failure(http.StatusInternalServerError, "The server failed", failedView{Said: "See its log."})
}

func failure(status int, heading string, view failedView) *page {
	return &page{Title: heading, Heading: heading, Status: status, Body: view, Again: view.Again}
}

func (v *visit) isAway(err error) bool {
	return access.IsUnavailable(err) || errors.Is(context.Cause(v.r.Context()), access.ErrUnavailable)
}

// refuse is the page of a request that the guard does not admit. It has no data.
func (c *console) refuse(w http.ResponseWriter, r *http.Request, refused *access.Refusal) {
	if c.guard.ToSignIn(w, r, refused) {
		return
	}
	refused.SetChallenge(w.Header(), r)
	refused.SetRetryAfter(w.Header())
	view := failedView{Said: refused.Text, Again: int(math.Ceil(refused.RetryAfter.Seconds()))}
	v := &visit{console: c, r: r, w: w, zone: time.UTC, theme: themes()[0]}
	if r.URL.RawQuery != "" || !access.IsText(r.URL.Path) {
		v.r = r.Clone(r.Context())
		v.r.URL = &url.URL{Path: "/"} // a page shows its address
	}
	v.send(v.render(failure(refused.Status, http.StatusText(refused.Status), view), "failed"), "")
}

func (v *visit) refused(r *operator.Refusal) *page {
	status := operator.HTTPStatus(r.Reason)
	view := failedView{Said: v.masked(r.Err.Error()), Near: v.near()}
	if r.Reason == refusal.File {
		view.Details, view.Said = v.mistakes(r.Err), "The job file is not valid."
	}
	for _, d := range r.Details {
		view.Details = append(view.Details, v.masked(d))
	}
	if r.Diff != "" {
		view.Diff = strings.Split(v.masked(r.Diff), "\n")
	}
	for _, a := range r.Actions {
		view.Next = append(view.Next, hintOf(v, a))
	}
	heading := map[int]string{
		http.StatusNotFound: "Not found", http.StatusConflict: "Not now", http.StatusUnprocessableEntity: "Not valid", http.StatusServiceUnavailable: "Not ready",
	}[status]
	if status == http.StatusServiceUnavailable {
		view.Again = comeAgain
	}
	return failure(status, heading, view)
}

// mistakes are the mistakes in a job file, one by one, each with its place.
func (v *visit) mistakes(err error) []string {
	var problems jobfile.Problems
	if !errors.As(err, &problems) {
		return []string{v.masked(err.Error())}
	}
	var list []string
	for _, p := range problems {
		list = append(list, v.masked(p.Error()))
	}
	return list
}

// near are pages like one of an execution or a job that does not exist.
func (v *visit) near() []link {
	ctx := v.r.Context()
	if v.r.PathValue("execution") != "" {
		page, err := v.Service.List(ctx, operator.ListRequest{Limit: 3})
		if err != nil {
			return nil
		}
		var list []link
		for _, e := range page.Executions {
			list = append(list, link{"execution " + id(e.ID) + " of job " + clip(e.JobName, shortText), v.Base + "/executions/" + id(e.ID)})
		}
		return append(list, link{"all executions", v.Base + "/executions"})
	}
	if job := v.r.PathValue("job"); job != "" {
		list := []link{{"all jobs", v.Base + "/jobs"}}
		if name := nearest.Name(job, v.Jobs.Names()); name != "" {
			list = slices.Insert(list, 0, link{"job " + name, v.jobLink(name)})
		}
		return list
	}
	return []link{{"what runs and what failed", v.Base + "/"}}
}

// unknown is every address without a page.
func (v *visit) unknown() (*page, error) {
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		v.w.Header().Set("Allow", "GET, HEAD")
		return failure(http.StatusMethodNotAllowed, "Pages are only read", failedView{Said: "Allowed here: GET, HEAD."}), nil
	}
	var paths []string
	titles := map[string]string{}
	for _, s := range sections(v.caller.Role) {
		paths, titles[s.Path] = append(paths, s.Path), s.Title
	}
	asked := v.r.URL.Path
	none := &missing{what: "There is no page " + clip(asked, shortText) + "."}
	if in, tab, is := strings.Cut(strings.TrimPrefix(asked, "/executions/"), "/"); is && in != "" && strings.HasPrefix(asked, "/executions/") {
		near := nearest.Name(tab, tabNames())
		for _, name := range tabNames() {
			if near == "" || name == near {
				none.near = append(none.near, link{name, v.Base + "/executions/" + in + "/" + name})
			}
		}
		return nil, none
	}
	if near := nearest.Name(asked, paths); near != "" {
		none.near = append(none.near, link{titles[near], v.Base + near})
	} else {
		for _, s := range sections(v.caller.Role) {
			none.near = append(none.near, link{s.Title, v.Base + s.Path})
		}
	}
	return nil, none
}

func tabNames() []string {
	return []string{"timeline", "parts", "skips", "throughput", "log", "definition", "results", "audit", "tasks", "compare"}
}
