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
	"strings"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Error implements error.
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

// serveAct shows a form, or does its act.
func (c *console) serveAct(w http.ResponseWriter, r *http.Request, a act) {
	ctx, end := access.Answering(r.Context(), c.Service.CheckDatabase)
	defer end()
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
	v := &visit{console: c, r: r.WithContext(ctx), w: w, caller: access.CallerOf(ctx)}
	v.choose()
	if made := v.show(a.route); made != nil {
		v.send(made, a.section)
	}
}

var (
	// errShowAgain: the form has other choices than its plan.
	errShowAgain = errors.New("the plan is for other choices")
	// errAnswered: no page follows.
	errAnswered = errors.New("answered")
)

// sent does the act of a form. A nil page means that the browser is sent to the page that follows.
func (f *form) sent() (*page, error) {
	if err := f.r.ParseMultipartForm(access.MaxBody); err != nil && !errors.Is(err, http.ErrNotMultipart) { // of at most MaxBody
		return nil, &operator.RequestError{Field: "form", Reason: "it cannot be read: " + err.Error()}
	}
	f.values = f.r.PostForm
	if err := f.checkTexts(); err != nil {
		return nil, err
	}
	if f.refused != nil {
		return f.showRefused()
	}
	if f.values.Get(doField) == doCheck {
		return f.act.show(f)
	}
	op, err := f.act.send(f)
	if errors.Is(err, errShowAgain) {
		return f.act.show(f)
	}
	if errors.Is(err, errAnswered) {
		return nil, nil //nolint:nilnil // answered
	}
	var got answered
	if err == nil {
		err = f.request(f.r.Context(), op, f.values.Get(keyField), &got)
	}
	if err == nil && got.Warning != "" {
		err = &problem{Status: http.StatusOK, Detail: got.Warning}
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
	return f.showRefused()
}

// showRefused is the form with all that was typed.
func (f *form) showRefused() (*page, error) {
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

// checkTexts refuses texts that cannot be stored; the form shows signs in their place.
func (f *form) checkTexts() error {
	n := 0
	for name, values := range f.values {
		if n += len(values); n > maxTyped {
			return &operator.RequestError{Field: "form", Reason: fmt.Sprintf("it has more than %d fields", maxTyped)}
		}
		const reason = "it is not valid UTF-8, or contains a NUL character"
		if !access.IsText(name) {
			return &operator.RequestError{Field: clip(name, shortText), Reason: reason}
		}
		for i, text := range values {
			if access.IsText(text) {
				continue
			}
			if values[i] = string(visible([]byte(text))); f.refused == nil {
				f.refused = &problem{Status: http.StatusUnprocessableEntity, Detail: "a text cannot be stored"}
			}
			f.refused.Errors = append(f.refused.Errors, problemError{reason, "body." + name})
		}
	}
	return nil
}

// request requests an operation of the API with the rights of the caller.
func (f *form) request(ctx context.Context, op operation, key string, into any) error {
	body, err := json.Marshal(op.body)
	if err != nil {
		return fmt.Errorf("write the request %s: %w", op.path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, op.path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("request %s: %w", op.path, err)
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
			return fmt.Errorf("%s answered with status %d: %w", op.path, got.status, err)
		}
		refused.Status = got.status
		return refused
	}
	if err := json.Unmarshal(got.body.Bytes(), into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", op.path, err)
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
		view.Next = append(view.Next, hintOf(f.visit, a))
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
