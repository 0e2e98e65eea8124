package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type findView struct {
	Asked string
	Found []found
}

// found is a place with its kind.
type found struct{ Kind, Text, Href string }

const mostFound = 20

// find leads to an execution by its number, to a job, to a page, or to a list of executions. A whole match
// leads there at once, unless the palette asks.
func (v ofList) find() (*page, error) {
	asked := strings.TrimSpace(v.text("q"))
	view := findView{Asked: asked}
	if n, err := strconv.ParseInt(asked, 10, 64); err == nil && n > 0 {
		to := v.executionLink(core.JobExecutionID(n))
		view.Found = append(view.Found, found{"execution", to.Text, to.Href})
	}
	names := v.Jobs.Names()
	history, err := v.Service.Jobs(v.r.Context())
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for i := range history {
		if !known[history[i].JobName] {
			names = append(names, history[i].JobName)
		}
	}
	lower := strings.ToLower(asked)
	for _, name := range names {
		if len(view.Found) < mostFound && strings.Contains(strings.ToLower(name), lower) {
			view.Found = append(view.Found, found{"job", clip(name, shortText), v.jobLink(name)})
		}
	}
	for _, s := range sections(v.caller.Role) {
		if strings.Contains(strings.ToLower(s.Title), lower) {
			view.Found = append(view.Found, found{"page", s.Title, v.Base + s.Path})
		}
	}
	if v.r.Header.Get("HX-Request") == "" && len(view.Found) == 1 && asked != "" {
		http.Redirect(v.w, v.r, view.Found[0].Href, http.StatusSeeOther)
		return nil, nil //nolint:nilnil // it leads elsewhere
	}
	if asked != "" {
		searches, err := v.searches(asked)
		if err != nil {
			return nil, err
		}
		view.Found = append(view.Found, searches...)
	}
	return &page{Title: "Find", Heading: findHeading(&view), Body: view}, nil
}

// searches are lists of executions: with this parameter, or with this text in an error.
func (v ofList) searches(asked string) ([]found, error) {
	to := v.Base + "/executions?"
	errors := found{"errors", "executions with " + clip(asked, shortText) + " in an error", to + "text=" + query(asked)}
	if name, value, is := strings.Cut(strings.Replace(asked, "=", ":", 1), ":"); is && name != "" {
		return []found{{"parameter", "executions with " + clip(name+"="+value, shortText), to + "param=" + query(name+":"+value)}, errors}, nil
	}
	var list []found
	newest, err := v.Service.List(v.r.Context(), operator.ListRequest{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	for _, name := range parameterNames(newest.Executions) {
		param := name + ":" + asked
		some, err := v.Service.List(v.r.Context(), operator.ListRequest{Limit: 1, Search: operator.Search{Params: []string{param}}})
		if err != nil {
			return nil, err
		}
		if len(some.Executions) > 0 {
			list = append(list, found{"parameter", "executions with " + clip(name+"="+asked, shortText), to + "param=" + query(param)})
		}
	}
	return append(list, errors), nil
}

// parameterNames are the first names of parameters.
func parameterNames(of []operator.Execution) []string {
	const most = 8
	var names []string
	for i := range of {
		for _, p := range operator.Given(of[i].Params.Identifying()) {
			if len(names) < most && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func findHeading(view *findView) string {
	switch {
	case view.Asked == "":
		return "Jump to an execution, a job or a page"
	case len(view.Found) == 1: // the search in errors
		return "No job, page or parameter value is called " + clip(view.Asked, shortText) + "; an error may contain it"
	}
	return "Found for " + clip(view.Asked, shortText)
}
