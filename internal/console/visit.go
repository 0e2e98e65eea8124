package console

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// visit is a request of a page.
type visit struct {
	*console
	r      *http.Request
	w      http.ResponseWriter
	zone   *time.Location
	theme  string
	caller access.Caller
	// wrong are the mistakes in the address that the page can leave out.
	wrong []string
}

// page is the view of a page.
type page struct {
	// Title begins with the subject of the page.
	Title string
	// Heading answers the question of the page.
	Heading string
	// Status of the answer: 0 means 200.
	Status int
	Body   any
	// Live are the topics of the stream that change the page.
	Live string

	// The following are filled in for every page.
	Section string
	Caller  access.Caller
	Zone    zoneView
	Theme   string
	Looks   []choice
	Wrong   []string
	At      moment
	// Stream is the address of the stream of changes.
	Stream string
	// Here is the address of the page.
	Here  string
	Query url.Values
}

// ReadOnly reports whether the caller may only read.
func (p *page) ReadOnly() bool { return p.Caller.Role != settings.Operator }

// Sections are the entries of the navigation.
func (p *page) Sections() []section { return sections(p.Caller.Role) }

func (c *console) serve(w http.ResponseWriter, r *http.Request, to route) {
	v := &visit{console: c, r: r, w: w, caller: access.CallerOf(r.Context())}
	v.choose()
	p, err := to.show(v)
	name := to.name
	if err != nil {
		p, name = v.failed(err), "failed"
	}
	if p == nil { // it leads elsewhere
		return
	}
	if name == "" {
		name = "failed"
	}
	v.write(p, name, to.section)
}

// write renders a page as a whole before the first byte is sent, so that an error is a page as well.
func (v *visit) write(p *page, name, section string) {
	p.Section, p.Caller, p.Theme, p.Zone = section, v.caller, v.theme, v.zoneView()
	if v.Stream != "" {
		p.Stream = v.Base + v.Stream
	}
	p.Wrong, p.At, p.Here, p.Query = append(p.Wrong, v.wrong...), v.moment(v.Now()), v.here(), v.r.URL.Query()
	for _, look := range themes() {
		p.Looks = append(p.Looks, choice{look, v.with(themeKey, look), look == v.theme})
	}
	status := p.Status
	if status == 0 {
		status = http.StatusOK
		if len(p.Wrong) > 0 {
			status = http.StatusUnprocessableEntity
		}
	}
	block := "page"
	if v.r.Header.Get("HX-Request") == "true" && v.r.Header.Get("HX-Boosted") == "" {
		block = "fragment"
	}
	var out bytes.Buffer
	if err := v.pages[name].ExecuteTemplate(&out, block, p); err != nil {
		v.Log.ErrorContext(v.r.Context(), "a page of the console could not be shown", "path", v.r.URL.Path, "error", err)
		http.Error(v.w, "the page could not be shown: see the log of the server", http.StatusInternalServerError)
		return
	}
	v.send(status, inert(out.Bytes(), v.Mask))
}

func (v *visit) send(status int, text []byte) {
	h := v.w.Header()
	access.SetPageHeaders(h)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Encoding, HX-Request")
	if acceptsGzip(v.r) {
		if small, err := compressed(text); err == nil {
			h.Set("Content-Encoding", "gzip")
			text = small
		}
	}
	v.w.WriteHeader(status)
	_, _ = v.w.Write(text) //nolint:errcheck // the client has gone
}

// here is the address of the page as its links have it.
func (v *visit) here() string {
	u := url.URL{Path: v.Base + v.r.URL.Path, RawQuery: v.r.URL.RawQuery}
	return u.String()
}

// with is the address of this page with another value in its query; an empty value removes it. Keys of
// pages begin again.
func (v *visit) with(pairs ...string) string {
	q := v.r.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	u := url.URL{Path: v.Base + v.r.URL.Path, RawQuery: q.Encode()}
	return u.String()
}

// number is a number in the path: 0 if it is none, which names nothing.
func (v *visit) number(name string) int64 {
	n, err := strconv.ParseInt(v.r.PathValue(name), 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// key is a number in the query, such as the key of a page: 0 if there is none. A wrong one is named.
func (v *visit) key(name string) int64 {
	text := v.r.URL.Query().Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		v.mistake(name, text, "expected a number")
		return 0
	}
	return n
}

// mistake notes a wrong value in the address, which the page leaves out.
func (v *visit) mistake(name, value, reason string, allowed ...string) {
	text := name + "=" + clip(value, shortText) + ": " + reason
	if len(allowed) > 0 {
		text += " (allowed: " + strings.Join(allowed, ", ") + ")"
	}
	v.wrong = append(v.wrong, text)
}

func (v *visit) text(name string) string { return v.r.URL.Query().Get(name) }

// masked is a text without secrets and passwords of connections.
func (v *visit) masked(text string) string { return secret.Text(v.Mask(text)) }

func (c *console) functions() template.FuncMap {
	return template.FuncMap{
		"static": c.assets.address,
		"base":   func() string { return c.Base },
		"icon": func(name string) (string, error) {
			address, err := c.assets.address("icons.svg")
			return address + "#" + name, err
		},
	}
}

// section is an entry of the navigation.
type section struct{ Name, Path, Title string }

// sections are the pages that a caller may see.
func sections(role settings.Role) []section {
	all := []section{
		{"now", "/", "Now"}, {"jobs", "/jobs", "Jobs"}, {"executions", "/executions", "Executions"}, {"schedules", "/schedules", "Schedules"},
		{"workers", "/workers", "Workers"}, {"tasks", "/tasks", "Tasks"}, {"groups", "/groups", "Groups"}, {"events", "/events", "Events"},
		{"audit", "/audit", "Audit"}, {"settings", "/settings", "Settings"},
	}
	if role != settings.Operator {
		all = slices.DeleteFunc(all, func(s section) bool { return s.Name == "audit" })
	}
	return all
}
