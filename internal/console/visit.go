package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
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
	// earlier has parts of earlier renderings; nil for a page that is rendered by itself.
	earlier *keptParts
}

// page is the view of a page.
type page struct {
	// Title begins with the subject of the page.
	Title string
	// Heading answers the question of the page.
	Heading string
	// Source is the execution that this one redrives; nil for another page.
	Source *link
	// Status of the answer: 0 means 200.
	Status int
	Body   any
	// Acts are the forms about the subject of the page.
	Acts []link
	// Live are the topics of the stream that change the page.
	Live string
	// Pace is the least time between two renderings for those who watch it; 0 means a second.
	Pace time.Duration
	// Again is when to come again, in seconds; 0 means that it is not said.
	Again int

	template *template.Template

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
	// Tag is the entity tag of its content.
	Tag string
	// Here is the address of the page.
	Here  string
	Query url.Values
}

// ReadOnly reports whether the caller may only read.
func (p *page) ReadOnly() bool { return p.Caller.Role != settings.Operator }

// Sections are the entries of the navigation.
func (p *page) Sections() []section { return sections(p.Caller.Role) }

func (c *console) serve(w http.ResponseWriter, r *http.Request, to route) {
	ctx, end := c.answering(r, to)
	defer end()
	r = r.WithContext(ctx)
	v := &visit{console: c, r: r, w: w, caller: access.CallerOf(ctx)}
	v.choose()
	if isFragment(v.r) && to.isWatched() {
		made, err := v.watch(to)
		if errors.Is(err, context.Canceled) { // the client has gone
			return
		}
		if err != nil {
			made = v.render(v.failed(err), "failed")
		}
		v.send(made, to.section)
		return
	}
	if made := v.show(to); made != nil {
		v.send(made, to.section)
	}
}

// isFragment reports whether a script asks for the content of the page, without the frame around it.
func isFragment(r *http.Request) bool {
	return r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-Boosted") == ""
}

// isWatched reports whether pages of the route ask again after a change. Downloads are written as they
// are read, so callers cannot share them.
func (r route) isWatched() bool {
	return r.name != "" && r.name != "find" && !strings.Contains(path.Base(r.pattern), ".")
}

// watch returns the rendering that all callers with the same role, zone and address share. What it shows
// cannot depend on more: it is made for a caller without a name.
func (v *visit) watch(to route) (*rendering, error) {
	key := strings.Join([]string{string(v.caller.Role), v.zone.String(), v.r.URL.Path, v.r.URL.RawQuery}, "\n")
	return v.shared.get(v.r.Context(), key, func(parts *keptParts) *rendering {
		ctx, end := access.Answering(context.WithoutCancel(v.r.Context()), v.Service.CheckDatabase)
		defer end()
		of := *v
		of.r, of.w, of.caller, of.wrong, of.earlier = v.r.WithContext(ctx), nil, access.Caller{Role: v.caller.Role}, slices.Clone(v.wrong), parts
		made := of.show(to)
		made.small, _ = v.gzips.compress(made.text) //nolint:errcheck // it is sent as it is then
		return made
	})
}

// show renders a page; nil means that the request is answered already.
func (v *visit) show(to route) *rendering {
	at := v.Now()
	p, err := to.show(v)
	name := to.name
	switch {
	case err != nil:
		p, name = v.failed(err), "failed"
	case p == nil:
		return nil
	case name == "":
		name = "failed"
	}
	made := v.render(p, name)
	made.at = at
	return made
}

// usualPage is the size in bytes that buffers of pages begin with.
const usualPage = 32 << 10

// render renders the content of a page as a whole before the first byte is sent, so that an error is a page as well.
func (v *visit) render(p *page, name string) *rendering {
	p.Wrong = append(p.Wrong, v.wrong...)
	made := &rendering{page: *p, status: p.Status, at: v.Now(), again: p.Again}
	if made.status == 0 {
		made.status = http.StatusOK
		if len(p.Wrong) > 0 {
			made.status = http.StatusUnprocessableEntity
		}
	}
	made.page.template = v.pages[name]
	out := bytes.NewBuffer(make([]byte, 0, usualPage))
	err := v.pages[name].ExecuteTemplate(out, "fragment", p)
	if err != nil {
		v.Log.ErrorContext(v.r.Context(), "a page of the console could not be shown", "path", v.r.URL.Path, "error", err)
		made.status = 0
		return made
	}
	made.page.Body = nil // it is rendered
	made.text = inert(out.Bytes(), v.Mask)
	made.sum = sumOf(made.text)
	return made
}

// rendering is the content of a page, without the frame around it: the same for all callers of a role.
type rendering struct {
	page   page
	status int
	// text is a fragment of HTML, small is the same compressed.
	text, small []byte
	// sum is of the text.
	sum string
	// at is when its numbers began to be read.
	at time.Time
	// again is when to come again, in seconds; 0 means that it is not said.
	again int
}

func (m *rendering) begun() time.Time { return m.at }

func (m *rendering) size() int { return len(m.text) + len(m.small) }

func (m *rendering) failed() bool {
	return m.status == 0 || m.status >= http.StatusInternalServerError
}

func (m *rendering) every() time.Duration { return m.page.Pace }

// asOf is the header with the time of the numbers: it changes each second, so it is no part of the content.
const asOf = "Surfin-As-Of"

// send answers with the fragment, or with the page around it, unless the client has it already.
func (v *visit) send(m *rendering, section string) {
	if m.status == 0 {
		http.Error(v.w, "the page could not be shown: see the log of the server", http.StatusInternalServerError)
		return
	}
	h := v.w.Header()
	access.SetPageHeaders(h)
	h.Set("Vary", "Accept-Encoding, HX-Request")
	at := v.moment(m.at)
	h.Set(asOf, at.ISO+" "+at.Text)
	if m.again > 0 {
		h.Set("Retry-After", strconv.Itoa(m.again))
	}
	tag, text, small := "W/\""+m.sum+"\"", m.text, m.small
	if !isFragment(v.r) {
		p := v.framed(m, tag, section)
		tag = "W/\"" + sumOf([]byte(fmt.Sprint(m.sum, p.Section, p.Caller, p.Zone, p.Theme, p.Stream, p.Here))) + "\""
		if text = v.around(p, m.text); text == nil {
			http.Error(v.w, "the page could not be shown: see the log of the server", http.StatusInternalServerError)
			return
		}
		small = nil
	}
	if m.status == http.StatusOK {
		h.Set("ETag", tag)
		if slices.Contains(strings.Split(strings.ReplaceAll(v.r.Header.Get("If-None-Match"), " ", ""), ","), tag) {
			v.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	if acceptsGzip(v.r) {
		if small == nil {
			small, _ = v.gzips.compress(text) //nolint:errcheck // it is sent as it is
		}
		if small != nil {
			h.Set("Content-Encoding", "gzip")
			text = small
		}
	}
	v.w.WriteHeader(m.status)
	_, _ = v.w.Write(text) //nolint:errcheck // the client has gone
}

// framed is the view of a page with the parts that belong to the caller.
func (v *visit) framed(m *rendering, tag, section string) *page {
	p := m.page
	p.Section, p.Caller, p.Theme, p.Zone, p.Tag = section, v.caller, v.theme, v.zoneView(), tag
	if v.Stream != "" {
		p.Stream = v.Base + v.Stream
	}
	p.At, p.Here, p.Query = v.moment(m.at), v.here(), v.r.URL.Query()
	for _, look := range themes() {
		p.Looks = append(p.Looks, choice{look, v.with(themeKey, look), look == v.theme})
	}
	return &p
}

// around is the page around a fragment; nil if it could not be rendered.
func (v *visit) around(p *page, fragment []byte) []byte {
	page := bytes.NewBuffer(make([]byte, 0, len(fragment)+usualPage))
	for i, name := range []string{"before", "after"} {
		var out bytes.Buffer
		if err := p.template.ExecuteTemplate(&out, name, p); err != nil {
			v.Log.ErrorContext(v.r.Context(), "a page of the console could not be shown", "path", v.r.URL.Path, "error", err)
			return nil
		}
		page.Write(inert(out.Bytes(), v.Mask))
		if i == 0 {
			page.Write(fragment)
		}
	}
	return page.Bytes()
}

func sumOf(text []byte) string {
	const enough = 16
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:enough])
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
		{"now", "/", "Now"}, {"jobs", "/jobs", "Jobs"}, {"executions", "/executions", "Executions"}, {"skips", "/skips", "Skips"}, {"schedules", "/schedules", "Schedules"},
		{"workers", "/workers", "Workers"}, {"tasks", "/tasks", "Tasks"}, {"groups", "/groups", "Groups"}, {"events", "/events", "Events"},
		{"audit", "/audit", "Audit"}, {"settings", "/settings", "Settings"},
	}
	if role != settings.Operator {
		all = slices.DeleteFunc(all, func(s section) bool { return s.Name == "audit" })
	}
	return all
}
