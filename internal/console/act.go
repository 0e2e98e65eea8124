package console

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// act is a page with a form. A POST to its address requests an operation of the API, which checks it,
// answers once for each key, and notes it in the audit.
type act struct {
	route
	// show renders the form, also with the values and the mistakes of a POST.
	show func(*form) (*page, error)
	// send is the operation that the values request.
	send func(*form) (operation, error)
	// done is the address of the page that follows.
	done func(*form, *answered) string
}

// operation is a request of the API: a path and a body.
type operation struct {
	path string
	body any
}

// answered is the answer of an operation that acts.
type answered struct {
	// ID is a number, or the name of a job or of a setting.
	ID      json.RawMessage `json:"id"`
	Applied bool            `json:"applied"`
	Warning string          `json:"warning"`
	// Group is the group of an act on many, Tasks are submitted ones.
	Group groupAnswer `json:"group"`
	Tasks []task.ID   `json:"tasks"`
}

// form is a request of a page with a form.
type form struct {
	*visit
	act act
	// values are those that were typed; before, those in the address.
	values url.Values
	// refused is the answer of the API to them; nil without one.
	refused *problem
	// said is the result of a button that does not act.
	said string
}

// problem is a refusal of the API.
type problem struct {
	Status  int               `json:"status"`
	Detail  string            `json:"detail"`
	Reason  operator.Reason   `json:"reason"`
	Details []string          `json:"details"`
	Diff    string            `json:"diff"`
	Actions []operator.Action `json:"actions"`
	Errors  []problemError    `json:"errors"`
}

type problemError struct {
	Message  string `json:"message"`
	Location string `json:"location"`
}

// groupAnswer is the group of tasks that an operation has submitted.
type groupAnswer struct {
	Group task.GroupID `json:"id"`
}

// The forms in groups.
type (
	ofRun     struct{ *form }
	ofRedrive struct{ *form }
	ofMany    struct{ *form }
	ofWorkAct struct{ *form }
)

// acts are the pages with a form. Tests walk over them.
func acts() []act {
	list := []act{
		{route{pattern: "/executions/{execution}/restart", section: "executions", name: "restart"}, (*form).restart, (*form).sendRestart, toExecution},
		{route{pattern: "/executions/{execution}/redrive", section: "executions", name: "redrive"}, asRedrive(ofRedrive.redrive), asRedrive(ofRedrive.sendRedrive), toExecution},
		{route{pattern: "/executions/{execution}/stop", section: "executions", name: "act"}, (*form).stop, (*form).sendStop, toExecution},
		{route{pattern: "/executions/{execution}/abandon", section: "executions", name: "act"}, (*form).abandon, (*form).sendAbandon, toExecution},
		{route{pattern: "/jobs/{job}/run", section: "jobs", name: "run"}, asRun(ofRun.run), asRun(ofRun.sendRun), toExecution},
		{route{pattern: "/jobs/{job}/backfill", section: "jobs", name: "backfill"}, asRun(ofRun.backfill), asRun(ofRun.sendBackfill), toGroup},
		{route{pattern: "/bulk", section: "executions", name: "bulk"}, asMany(ofMany.bulk), asMany(ofMany.sendBulk), toGroup},
		{route{pattern: "/settings/{name}", section: "settings", name: "act"}, asWork(ofWorkAct.setting), asWork(ofWorkAct.sendSetting), toSubject},
		{route{pattern: "/schedules/{job}/run", section: "schedules", name: "act"}, asWork(ofWorkAct.timeRun), asWork(ofWorkAct.sendTimeRun), toTask},
		{route{pattern: "/tasks/submit", section: "tasks", name: "act"}, asWork(ofWorkAct.submit), asWork(ofWorkAct.sendSubmit), toTask},
		{route{pattern: "/jobs/{job}/register", section: "jobs", name: "act"}, asWork(ofWorkAct.register), asWork(ofWorkAct.sendPlain), toTimes},
	}
	for _, at := range []route{
		{pattern: "/tasks/{task}/cancel", section: "tasks"}, {pattern: "/tasks/{task}/rerun", section: "tasks"}, {pattern: "/groups/{group}/cancel", section: "groups"},
		{pattern: "/events/{event}/offer", section: "events"}, {pattern: "/schedules/{job}/pause", section: "schedules"}, {pattern: "/schedules/{job}/resume", section: "schedules"},
		{pattern: "/recover", section: "executions"},
	} {
		at.name = "act"
		list = append(list, act{at, asWork(ofWorkAct.plain), asWork(ofWorkAct.sendPlain), toSubject})
	}
	return list
}

func asRedrive[T any](do func(ofRedrive) (T, error)) func(*form) (T, error) {
	return func(f *form) (T, error) { return do(ofRedrive{f}) }
}

func asRun[T any](do func(ofRun) (T, error)) func(*form) (T, error) {
	return func(f *form) (T, error) { return do(ofRun{f}) }
}

func asMany[T any](do func(ofMany) (T, error)) func(*form) (T, error) {
	return func(f *form) (T, error) { return do(ofMany{f}) }
}

func asWork[T any](do func(ofWorkAct) (T, error)) func(*form) (T, error) {
	return func(f *form) (T, error) { return do(ofWorkAct{f}) }
}

// The pages that follow an act: the execution, the group of tasks, or the subject of the form.
func toExecution(_ *form, got *answered) string {
	return "/executions/" + string(got.ID)
}

func toGroup(_ *form, got *answered) string {
	return "/groups/" + strconv.FormatInt(int64(got.Group.Group), 10)
}

// toTask leads to the first task of a submission, or to the one that is the answer itself.
func toTask(_ *form, got *answered) string {
	if len(got.Tasks) > 0 {
		return "/tasks/" + strconv.FormatInt(int64(got.Tasks[0]), 10)
	}
	return "/tasks/" + string(got.ID)
}

func toTimes(f *form, _ *answered) string {
	return strings.TrimPrefix(ofJob{f.visit}.timesLink(f.r.PathValue("job")), f.Base)
}

func toSubject(f *form, _ *answered) string { return ofWorkAct{f}.back() }
