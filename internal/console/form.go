package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
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

// answered is what an operation that acts answers.
type answered struct {
	ID      core.JobExecutionID `json:"id"`
	Applied bool                `json:"applied"`
	Warning string              `json:"warning"`
	// Group is the group of tasks of an act on many.
	Group groupAnswer `json:"group"`
}

// form is a request of a page with a form.
type form struct {
	*visit
	act act
	// values are those that were typed; before, those in the address.
	values url.Values
	// refused is the answer of the API to them; nil without one.
	refused *problem
}

// problem is a refusal of the API.
type problem struct {
	Status  int               `json:"status"`
	Detail  string            `json:"detail"`
	Reason  operator.Reason   `json:"reason"`
	Last    int64             `json:"last"`
	Details []string          `json:"details"`
	Diff    string            `json:"diff"`
	Actions []operator.Action `json:"actions"`
	Errors  []problemError    `json:"errors"`
}

type problemError struct {
	Message  string `json:"message"`
	Location string `json:"location"`
}

func (p *problem) Error() string { return p.Detail }

// The fields that all forms have.
const (
	keyField    = "key"
	epochField  = "epoch"
	reasonField = "reason"
	// doField is the button: empty acts.
	doField  = "do"
	doCheck  = "check"
	maxTyped = 1000 // fields
)

// formView is the part that all forms have.
type formView struct {
	// Action is the address that it is sent to.
	Action string
	// Key makes the act happen once, however often the form is sent.
	Key    string
	Epoch  string
	Reason string
	// Refused is the answer to what was sent.
	Refused *refusedView
	// Button is empty if it cannot be pressed.
	Button string
	Cancel string
	// NoReason: the audit has no reason of it.
	NoReason bool
}

// refusedView is a refusal with its cures.
type refusedView struct {
	Said string
	// Details lead to their fields.
	Details []link
	Diff    []diffLine
	Next    []command
	Again   int
}

// serveAct shows a form, or does what it says.
func (c *console) serveAct(w http.ResponseWriter, r *http.Request, a act) {
	a.route.show = func(v *visit) (*page, error) {
		if v.caller.Role != settings.Operator {
			return nil, errOnlyOperators
		}
		f := &form{visit: v, act: a, values: v.r.URL.Query()}
		if v.r.Method == http.MethodPost {
			return f.sent()
		}
		return a.show(f)
	}
	c.serve(w, r, a.route)
}

var errOnlyOperators = errors.New("this is for operators: sign in with the token of an operator")

// errShowAgain: the form does not belong to what it shows.
var errShowAgain = errors.New("the plan is for other choices")

// sent does what a form says. A nil page means that the browser is sent to the page that follows.
func (f *form) sent() (*page, error) {
	if err := f.r.ParseForm(); err != nil {
		return nil, &operator.RequestError{Field: "form", Reason: "it cannot be read: " + err.Error()}
	}
	f.values = f.r.PostForm
	if err := f.checkTexts(); err != nil {
		return nil, err
	}
	if f.values.Get(doField) == doCheck {
		return f.act.show(f)
	}
	what, err := f.act.send(f)
	if errors.Is(err, errShowAgain) {
		return f.act.show(f)
	}
	var got answered
	if err == nil {
		err = f.request(f.r.Context(), what, f.values.Get(keyField), &got)
	}
	if err == nil {
		f.w.Header().Set("Location", f.Base+f.act.done(f, &got))
		access.SetPageHeaders(f.w.Header())
		f.w.WriteHeader(http.StatusSeeOther)
		return nil, nil //nolint:nilnil // answered
	}
	if !errors.As(err, &f.refused) {
		return nil, err
	}
	p, err := f.act.show(f)
	if err == nil && p.Status == 0 {
		p.Status, p.Again = f.refused.Status, f.refused.again()
	}
	return p, err
}

func (p *problem) again() int {
	if p.Status == http.StatusServiceUnavailable {
		return comeAgain
	}
	return 0
}

func (f *form) checkTexts() error {
	n := 0
	for name, values := range f.values {
		if n += len(values); n > maxTyped {
			return &operator.RequestError{Field: "form", Reason: fmt.Sprintf("it has more than %d fields", maxTyped)}
		}
		if !access.IsText(name) || slices.ContainsFunc(values, func(s string) bool { return !access.IsText(s) }) {
			return &operator.RequestError{Field: clip(name, shortText), Reason: "it is not valid UTF-8, or contains a NUL character"}
		}
	}
	return nil
}

// request requests an operation of the API with the rights of the caller.
func (f *form) request(ctx context.Context, what operation, key string, into any) error {
	body, err := json.Marshal(what.body)
	if err != nil {
		return fmt.Errorf("write the request %s: %w", what.path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, what.path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("request %s: %w", what.path, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	got := &inMemory{header: http.Header{}, status: http.StatusOK}
	f.Operations.ServeHTTP(got, r)
	if got.status >= http.StatusBadRequest {
		refused := &problem{}
		if err := json.Unmarshal(got.body.Bytes(), refused); err != nil {
			return fmt.Errorf("%s answered with status %d: %w", what.path, got.status, err)
		}
		refused.Status = got.status
		return refused
	}
	if err := json.Unmarshal(got.body.Bytes(), into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", what.path, err)
	}
	return nil
}

// inMemory keeps an answer.
type inMemory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *inMemory) Header() http.Header { return m.header }

func (m *inMemory) WriteHeader(status int) { m.status = status }

func (m *inMemory) Write(p []byte) (int, error) { return m.body.Write(p) }

// view is the part of all forms. A form that was refused gets a new key, since the answer belongs to the
// old one; with an unknown outcome it keeps the key, so that it is done once.
func (f *form) view(button string) formView {
	view := formView{Action: f.Base + f.r.URL.Path, Key: f.values.Get(keyField), Epoch: f.values.Get(epochField), Reason: f.values.Get(reasonField), Button: button}
	checked := f.values.Get(doField) == doCheck
	if f.r.Method != http.MethodPost || f.refused != nil && f.refused.Status < http.StatusInternalServerError || view.Key == "" && checked {
		view.Key, view.Epoch = newKey(), ""
	}
	if f.refused != nil {
		view.Refused = f.refusedView(f.refused)
	}
	return view
}

func newKey() string {
	const size = 16
	key := make([]byte, size)
	_, _ = rand.Read(key) //nolint:errcheck // it never fails
	return "console-" + hex.EncodeToString(key)
}

func (f *form) refusedView(p *problem) *refusedView {
	view := &refusedView{Said: f.masked(p.Detail), Again: p.again()}
	for _, d := range p.Details {
		if d != p.Detail {
			view.Details = append(view.Details, link{Text: f.masked(d)})
		}
	}
	for _, e := range p.Errors {
		field := strings.TrimPrefix(e.Location, "body.")
		one := link{Text: f.masked(strings.TrimSpace(strings.TrimPrefix(field, "params.") + ": " + e.Message))}
		if f.values.Has(field) {
			one.Href = "#" + field
		}
		view.Details = append(view.Details, one)
	}
	if p.Diff != "" {
		view.Diff = diffLines(f.masked(p.Diff))
	}
	for _, a := range p.Actions {
		view.Next = append(view.Next, f.hint(a))
	}
	return view
}

// wrong is the message about the value of a field; empty if it is right.
func (f *form) wrong(field string) string {
	if f.refused == nil {
		return ""
	}
	for _, e := range f.refused.Errors {
		if e.Location == "body."+field {
			return f.masked(e.Message)
		}
	}
	return ""
}

// hint is an action of the service as a command, and as a page with the form that does it.
func (v *visit) hint(a operator.Action) command {
	h := v.Commands.Hint(a)
	return command{h.Label, v.masked(h.Text), v.formOf(a)}
}

// acting are links to forms for those who may act: texts, each with its path.
func (v *visit) acting(pairs ...string) []link {
	if v.Operations == nil || v.caller.Role != settings.Operator {
		return nil
	}
	var list []link
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] != "" {
			list = append(list, link{pairs[i], v.Base + pairs[i+1]})
		}
	}
	return list
}

// formOf is the address of the page or of the form for an action; empty if there is none, or if the caller may only read.
func (v *visit) formOf(a operator.Action) string {
	of, q := v.executionLink(a.Execution).Href, url.Values{}
	switch a.Kind {
	case refusal.ActShow, refusal.ActExplain:
		return of
	case refusal.ActSkips:
		return of + "/skips?left=true"
	case refusal.ActWorkers, refusal.ActWork:
		return v.Base + "/workers"
	}
	if v.Operations == nil || v.caller.Role != settings.Operator {
		return ""
	}
	switch a.Kind {
	case refusal.ActRestart:
		if a.NeedsFile {
			return ""
		}
		if a.FromStart {
			q.Set(fromField, fromStart)
		} else if a.From != "" {
			q.Set(fromField, elementPrefix+a.From)
		}
		set(q, acceptField, a.AcceptChanges)
		set(q, ifCompleteField, a.IfComplete)
		return address(of+"/restart", q)
	case refusal.ActRedrive, refusal.ActExport:
		if a.Step != "" {
			q.Set(stepField, a.Step)
		}
		return address(of+"/redrive", q)
	case refusal.ActRecover:
		return v.Base + "/recover"
	case refusal.ActStop:
		return of + "/stop"
	case refusal.ActAbandon:
		return of + "/abandon"
	case refusal.ActRun, refusal.ActAgain, refusal.ActNext:
		if _, err := v.Jobs.Job(a.Job); err != nil || a.Job == "" {
			return ""
		}
		for name, value := range a.Params {
			q.Set(paramPrefix+name, value)
		}
		set(q, againField, a.Kind == refusal.ActAgain)
		set(q, nextField, a.Kind == refusal.ActNext)
		return address(v.jobLink(a.Job)+"/run", q)
	}
	return ""
}

const yes = "true"

// number is a number in a body; another text is refused there.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

func set(q url.Values, field string, on bool) {
	if on {
		q.Set(field, yes)
	}
}

func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
