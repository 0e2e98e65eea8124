package browser

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const (
	patience = time.Minute // a busy machine is slow, and nothing is proven by it
	poll     = 50 * time.Millisecond
)

// tab is a page in a profile of its own. At its end the test fails for everything recorded: messages of
// the console, violations of the policy, issues, and requests to other hosts.
type tab struct {
	t    testing.TB
	ctx  context.Context
	at   string // scheme and host of the server
	name string // of its pictures
	seen int

	mu       sync.Mutex
	recorded []string
	status   int64 // of the last page
	// All requests of the tab, and the bytes of their answers.
	asked   []string
	bytes   int64
	pending map[network.RequestID]string // addresses of open requests, without streams
	last    time.Time                    // when the last one began or ended
	// away means that the server is away just now: the browser says so for each request.
	away bool
	// refused means that pages may have a status of 400 and more: the browser says so for each.
	refused bool
	// back means that a script goes back, which the browser reports.
	back bool
}

func newTab(t testing.TB, at, name string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, at: at, name: name, pending: map[network.RequestID]string{}}
	if len(options) == 0 {
		options = append(options, chromedp.WithNewBrowserContext())
	}
	options = append(options, chromedp.WithListener(b.record))
	ctx, cancel := chromedp.NewContext(chromium, options...)
	t.Cleanup(cancel)
	b.ctx = ctx
	require.NoError(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, target, audits.Enable, cdp.Empty{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
			addEventListener("securitypolicyviolation", e => console.error("policy: " + e.effectiveDirective + " " + e.blockedURI + " " + e.sample));`})
		return err
	})))
	t.Cleanup(b.assertQuiet)
	return b
}

// record is called in the order of events.
func (b *tab) record(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		var said []string
		for _, a := range e.Args {
			said = append(said, strings.TrimSpace(string(a.Value)+" "+a.Description))
		}
		b.say("console.%s: %s", e.Type, strings.Join(said, " "))
	case *runtime.EventExceptionThrown:
		b.say("exception: %s", exception(e.ExceptionDetails))
	case *log.EventEntryAdded:
		b.say("log: %s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *audits.EventIssueAdded:
		b.say("issue: %s", e.Issue.Code)
	case *page.EventFrameNavigated:
		b.mu.Lock()
		clear(b.pending) // of the page before it
		b.mu.Unlock()
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument {
			b.mu.Lock()
			b.status = e.Response.Status
			b.mu.Unlock()
		}
	case *network.EventLoadingFinished:
		b.request(e.RequestID, "")
		b.mu.Lock()
		b.bytes += int64(e.EncodedDataLength)
		b.mu.Unlock()
	case *network.EventLoadingFailed:
		b.request(e.RequestID, "")
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.asked = append(b.asked, e.Request.Method+" "+e.Request.URL)
		b.mu.Unlock()
		if !strings.Contains(e.Request.URL, "/stream") {
			b.request(e.RequestID, e.Request.URL)
		}
		if to, err := url.Parse(e.Request.URL); err != nil || to.Scheme != "about" && to.Scheme != "data" && to.Scheme+"://"+to.Host != b.at {
			b.say("a request to another host: %s", e.Request.URL)
		}
	}
}

func (b *tab) request(id network.RequestID, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = time.Now()
	if address != "" {
		b.pending[id] = address
	} else {
		delete(b.pending, id)
	}
}

func (b *tab) say(format string, args ...any) {
	said := fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away && slices.ContainsFunc([]string{"ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "Failed to fetch"},
		func(expected string) bool { return strings.Contains(said, expected) }) {
		return
	}
	if b.refused && strings.Contains(said, "the server responded with a status of ") {
		return
	}
	if b.back && said == "issue: GenericIssue" {
		return
	}
	b.recorded = append(b.recorded, said)
}

// assertQuiet fails for each recorded line, and forgets them.
func (b *tab) assertQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, said := range b.recorded {
		b.t.Errorf("the browser recorded: %s", said)
	}
	b.recorded = nil
}

// do runs steps, at most for a while.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...), b.where)
}

// goes runs steps that lead to another page, and waits until it is loaded. It returns the status.
func (b *tab) goes(steps ...chromedp.Action[chromedp.Void]) int64 {
	b.t.Helper()
	from := b.where()
	b.do(chromedp.Evaluate[chromedp.Void](`document.left = true`))
	b.do(steps...)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		// The page may be gone while it is asked.
		loaded, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!document.left && document.readyState === "complete"`))
		cancel()
		if err == nil && loaded {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.status
		}
		require.True(b.t, time.Now().Before(deadline), "no other page is loaded, from %s: %v", from, err)
	}
}

// refusal goes to a page that the server refuses to show, and shows that instead.
func (b *tab) refusal(status int64, path string) {
	b.t.Helper()
	b.refused = true
	require.Equal(b.t, status, b.goes(navigate(b.at+path)), path)
}

// open goes to a page of the server.
func (b *tab) open(path string) {
	b.t.Helper()
	require.EqualValues(b.t, 200, b.goes(navigate(b.at+path)), path)
}

func navigate(address string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.Navigate, page.NavigateParams{URL: address})
		return err
	})
}

// click clicks on the visible link inside the selector that has this text, or leads to this path, and waits for
// its page.
func (b *tab) click(in, link string) {
	b.t.Helper()
	status := b.clicks(fmt.Sprintf(`[...document.querySelectorAll(%[1]q)].flatMap(e => [...e.querySelectorAll("a[href]")]).find(a =>
		(a.innerText.trim() === %[2]q || a.getAttribute("href") === %[2]q) && a.checkVisibility())`, in, link))
	require.EqualValues(b.t, 200, status, link)
}

// clicks clicks on the middle of an element, where it is now: an update of a live page would take a mark of it. It waits for
// the page to which that leads.
func (b *tab) clicks(element string) int64 {
	b.t.Helper()
	at := evaluate[struct{ X, Y float64 }](b, `(e => {
		if (!e) throw new Error("no such element at " + location.href);
		e.scrollIntoView({block: "center", behavior: "instant"});
		const at = e.getClientRects()[0];
		return {x: at.x + at.width / 2, y: at.y + at.height / 2};
	})(`+element+`)`)
	return b.goes(chromedp.MouseClickXY(at.X, at.Y))
}

// text returns the visible text of the first element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return evaluate[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

func (b *tab) where() string {
	return evaluate[string](b, `location.href + " (" + document.title + ")"`)
}

// path is the page's address without its host.
func (b *tab) path() string { return evaluate[string](b, `location.pathname + location.search`) }

// await waits until an expression of the page is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !evaluate[bool](b, "!!("+expression+")"); time.Sleep(poll) {
		require.True(b.t, time.Now().Before(deadline), "not so: %s at %s:\n%s", expression, b.where(), b.text("body"))
	}
}

// stays marks the page: another one, or the same one loaded again, has no mark.
func stays() chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`document.stays = true`)
}

// says is an expression of the page: its content has all texts.
func says(texts ...string) string {
	var all []string
	for _, text := range texts {
		all = append(all, fmt.Sprintf(`document.getElementById("main").innerText.includes(%q)`, text))
	}
	return strings.Join(all, " && ")
}

// press presses and releases keys. Like those of a person, and unlike chromedp.KeyEvent, a key types
// nothing if the page prevents its default.
func press(keys string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, r := range keys {
			events := kb.Encode(r)
			down, up := *events[0], *events[len(events)-1]
			if len(events) == 3 {
				down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			}
			for _, e := range []input.DispatchKeyEventParams{down, up} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, e); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// tabTo presses the tab key until the link with this address has the focus.
func (b *tab) tabTo(href string) {
	b.t.Helper()
	for range 200 {
		b.do(press(kb.Tab))
		if evaluate[string](b, `document.activeElement?.getAttribute("href") ?? ""`) == href {
			return
		}
	}
	b.t.Fatalf("the tab key leads to no link %s at %s", href, b.where())
}

// settle waits until no request is open, and then for the next frame.
func (b *tab) settle() { b.rests(150 * time.Millisecond) } // a palette asks when nothing was typed for a moment

// rests waits until there was no request for a while, and then for the next frame.
func (b *tab) rests(quiet time.Duration) {
	b.t.Helper()
	b.mu.Lock()
	b.last = time.Now()
	b.mu.Unlock()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		b.mu.Lock()
		pending, last := maps.Clone(b.pending), b.last
		b.mu.Unlock()
		if len(pending) == 0 && time.Since(last) > quiet {
			break
		}
		require.True(b.t, time.Now().Before(deadline), "requests do not end: %v", pending)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`new Promise(done => requestAnimationFrame(() => done()))`, chromedp.EvalAwaitPromise))
}

func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return got
}

func exception(e *runtime.ExceptionDetails) string {
	if e.Exception != nil && e.Exception.Description != "" {
		return e.Text + " " + e.Exception.Description
	}
	return e.Text
}
