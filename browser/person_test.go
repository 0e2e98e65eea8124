package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// person uses the pages: with a mouse, by keyboard alone, or with a client that knows no script.
type person interface {
	signsIn(path string)
	opens(path string)
	// follows goes to the page of a link.
	follows(text string)
	fills(field, text string)
	// ticks changes a box.
	ticks(field string)
	// presses sends the form by one of its buttons.
	presses(button string)
	// sees waits until the page has the texts, with which a browser does not load it again.
	sees(texts ...string)
}

// eachPerson runs a scenario for every kind of person, on a database of its own.
func eachPerson(t *testing.T, files map[string]string, do func(t *testing.T, s *scene, p person)) {
	t.Helper()
	for name, newPerson := range map[string]func(t *testing.T, server *served) person{
		"mouse":  func(t *testing.T, server *served) person { return mouse{newTab(t, server.at, t.Name())} },
		"keys":   func(t *testing.T, server *served) person { return keys{mouse{newTab(t, server.at, t.Name())}} },
		"client": func(t *testing.T, server *served) person { return newPlain(t, server) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, dbURL string) {
				t.Parallel()
				s, server := acting(t, dbURL, files)
				do(t, s, newPerson(t, server))
			})
		})
	}
}

type mouse struct{ b *tab }

func (m mouse) signsIn(path string) { m.b.signIn(annaToken, path) }

func (m mouse) opens(path string) { m.b.open(path) }

func (m mouse) follows(text string) { m.b.click("main", text) }

func (m mouse) fills(field, text string) { m.b.fill(field, text) }

func (m mouse) ticks(field string) {
	m.b.do(chromedp.Click(chromedp.CSS(`[name="` + field + `"]`)))
}

func (m mouse) presses(button string) {
	m.b.refused = true // a form with a mistake is shown again as 422
	m.b.button(button)
}

func (m mouse) sees(texts ...string) { m.b.await(says(texts...)) }

type keys struct{ mouse }

// to presses the tab key until an expression about the focused element, e, is true.
func (k keys) to(expression string) {
	k.b.t.Helper()
	k.b.settle()
	for range 300 {
		if evaluate[bool](k.b, `(e => !!(`+expression+`))(document.activeElement)`) {
			return
		}
		k.b.do(press(kb.Tab))
	}
	k.b.t.Fatalf("the tab key leads to no element with %s at %s", expression, k.b.where())
}

func (k keys) follows(text string) {
	k.b.t.Helper()
	k.to(fmt.Sprintf(`e.href && e.innerText.trim() === %q`, text))
	require.EqualValues(k.b.t, http.StatusOK, k.b.goes(press(kb.Enter)), text)
}

func (k keys) fills(field, text string) {
	k.b.t.Helper()
	k.to(fmt.Sprintf(`e.name === %q`, field))
	all := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		const control = 2
		e := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: control, Key: "a", Code: "KeyA", WindowsVirtualKeyCode: 'A', Commands: []string{"selectAll"}}
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, e)
		return err
	})
	k.b.do(all, press(text))
}

func (k keys) ticks(field string) {
	k.b.t.Helper()
	k.to(fmt.Sprintf(`e.name === %q`, field))
	k.b.do(press(" "))
}

func (k keys) presses(button string) {
	k.b.t.Helper()
	k.b.refused = true
	k.to(fmt.Sprintf(`e.tagName === "BUTTON" && e.innerText.trim() === %q`, button))
	k.b.goes(press(kb.Enter))
}

// plain knows no script and no style.
type plain struct {
	t      testing.TB
	server *served
	client *http.Client
	at     string
	page   *html.Node
	values url.Values // typed
}

func newPlain(t testing.TB, server *served) *plain {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &plain{t: t, server: server, client: &http.Client{Jar: jar}}
}

func (p *plain) ask(method, address string, form url.Values) {
	p.t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(context.Background(), method, p.server.at+address, body)
	require.NoError(p.t, err)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := p.client.Do(r)
	require.NoError(p.t, err)
	defer got.Body.Close()
	require.Less(p.t, got.StatusCode, http.StatusInternalServerError)
	p.page, err = html.Parse(got.Body)
	require.NoError(p.t, err)
	p.at, p.values = got.Request.URL.RequestURI(), url.Values{}
}

func (p *plain) signsIn(path string) {
	p.t.Helper()
	p.opens(path)
	p.fills("token", annaToken)
	p.presses("Sign in")
	require.Equal(p.t, path, p.at)
}

func (p *plain) opens(path string) { p.ask(http.MethodGet, path, nil) }

func (p *plain) follows(text string) {
	p.t.Helper()
	for n := range p.page.Descendants() {
		if n.Data == "a" && textOf(n) == text && attribute(n, "href") != "" {
			p.opens(attribute(n, "href"))
			return
		}
	}
	p.t.Fatalf("no link %q at %s:\n%s", text, p.at, textOf(p.page))
}

func (p *plain) fills(field, text string) { p.values.Set(field, text) }

func (p *plain) ticks(field string) { p.values.Set(field, "true") }

func (p *plain) presses(button string) {
	p.t.Helper()
	to, values := p.form(button)
	p.ask(http.MethodPost, to, values)
}

// form has the values of the form with the button, and the typed values in place of its own; and its address.
func (p *plain) form(button string) (to string, values url.Values) {
	p.t.Helper()
	for form := range p.page.Descendants() {
		if form.Data != "form" || attribute(form, "method") != "post" {
			continue
		}
		var pressed *html.Node
		for n := range form.Descendants() {
			if n.Data == "button" && textOf(n) == button {
				pressed = n
			}
		}
		if pressed == nil {
			continue
		}
		values = formValues(form)
		for name, typed := range p.values {
			values[name] = typed
		}
		if name := attribute(pressed, "name"); name != "" {
			values.Set(name, attribute(pressed, "value"))
		}
		if to = attribute(form, "action"); to == "" {
			to = p.at
		}
		return to, values
	}
	p.t.Fatalf("no button %q at %s:\n%s", button, p.at, textOf(p.page))
	return "", nil
}

func (p *plain) sees(texts ...string) {
	p.t.Helper()
	at := p.at
	for deadline := time.Now().Add(patience); ; time.Sleep(poll) {
		page, missing := textOf(p.page), ""
		for _, text := range texts {
			if !strings.Contains(page, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		require.True(p.t, time.Now().Before(deadline), "no %q at %s:\n%s", missing, at, page)
		p.opens(at)
	}
}

// formValues are those that a browser would send.
func formValues(form *html.Node) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name := attribute(n, "name")
		switch {
		case name == "":
		case n.Data == "input" && attribute(n, "type") == "checkbox":
			if has(n, "checked") {
				values.Add(name, attribute(n, "value"))
			}
		case n.Data == "input":
			values.Add(name, attribute(n, "value"))
		case n.Data == "textarea" && n.FirstChild != nil:
			values.Add(name, n.FirstChild.Data)
		case n.Data == "select":
			chosen := ""
			for o := range n.Descendants() {
				if o.Data == "option" && has(o, "selected") {
					chosen = attribute(o, "value")
				}
			}
			values.Add(name, chosen)
		}
	}
	return values
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf is the text of an element with single spaces.
func textOf(of *html.Node) string {
	var text strings.Builder
	for n := range of.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "script" {
			text.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
