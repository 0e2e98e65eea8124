package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// fill types a text into a field in place of its text.
func (b *tab) fill(name, text string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const f = document.querySelector('form.act [name=%q]'); f.focus(); f.select && f.select(); })()`, name)), press(text))
}

// button presses the button of a form that has this text, and returns the status of the page that follows.
func (b *tab) button(text string) int64 {
	b.t.Helper()
	b.await(fmt.Sprintf(`[...document.querySelectorAll("form.act button")].some(e => e.innerText.trim() === %q)`, text))
	if evaluate[bool](b, `document.querySelector("form.act").hasAttribute("hx-post")`) {
		b.rests(700 * time.Millisecond) // it checks half a second after the last key, and its buttons move
	}
	return b.clicks(fmt.Sprintf(`[...document.querySelectorAll("form.act button")].find(e => e.innerText.trim() === %q)`, text))
}

// bearer asks with a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func acting(t *testing.T, dbURL string, files map[string]string) (*scene, *served) {
	t.Helper()
	s := newScene(t, dbURL, files)
	s.env = append(append(s.env, "SURFIN_API_LISTEN="+freePort(t)), tokens()...)
	s.does(0, "migrate")
	return s, s.serve()
}

func TestAJobIsRunAndRestartedFromItsPages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s, server := acting(t, dbURL, paymentsFiles())
		b := newTab(t, server.at, "acting")
		b.signIn(annaToken, "/jobs/payments")
		b.click("main", "Run it")
		b.fill("reason", "the first of the night")
		b.look("run")
		b.button("Check")
		b.await(says("What the run does", "It is a new instance.", "Step book (chunk)"))
		b.look("run checked")
		require.EqualValues(t, http.StatusOK, b.button("Run"))
		require.Equal(t, "/executions/1", b.path())
		b.await(`document.querySelector("h1").innerText === "Execution 1 of job payments failed"`)
		assertWhy(t, b.text("main"))

		s.write("jobs/payments.csv", strings.Replace(payments, "2x.50", "24.50", 1))
		b.click("main", "restart it")
		b.await(says("What the restart does", "Step book (chunk)"))
		b.look("restart")
		require.EqualValues(t, http.StatusOK, b.button("Restart execution 1"))
		require.Equal(t, "/executions/2", b.path())
		b.await(`document.querySelector("h1").innerText === "Execution 2 of job payments failed"`) // the file has changed
		b.click("main", "restart it")
		b.do(chromedp.Click(chromedp.CSS(`[name="accept_changes"]`)))
		b.await(`document.querySelector('[name="planned"]').value === "accept_changes=true"`) // the plan follows
		require.EqualValues(t, http.StatusOK, b.button("Restart execution 2"))
		b.await(`document.querySelector("h1").innerText === "Execution 3 of job payments completed"`)
		require.Contains(t, b.text("main"), "balanced")

		b.open("/executions/3/audit")
		require.Contains(t, b.text("main"), "anna")
	})
}

func TestAFormIsDoneOnceHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s, server := acting(t, dbURL, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		first, second := newTab(t, server.at, "first"), newTab(t, server.at, "second")
		for _, b := range []*tab{first, second} {
			b.signIn(annaToken, "/executions/1/restart")
		}
		// A double click sends it twice.
		require.EqualValues(t, http.StatusOK, first.goes(chromedp.Evaluate[chromedp.Void](`(() => {
			const form = document.querySelector("form.act");
			fetch(form.action, {method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual"});
			form.requestSubmit(form.querySelector("button.main"));
		})()`)))
		require.Equal(t, "/executions/2", first.path())
		second.refused = true
		require.EqualValues(t, http.StatusConflict, second.button("Restart execution 1"))
		second.await(says("execution 1 has changed since"))
		second.look("restart refused")
		first.await(`document.querySelector("h1").innerText === "Execution 2 of job payments failed"`)

		// Back, and the button again: a page that the browser kept has the same key, another one is refused.
		first.refused, first.back = true, true
		first.do(chromedp.Evaluate[chromedp.Void](`history.back()`))
		first.await(`location.pathname === "/executions/1/restart"`)
		first.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("button.main")?.click()`))
		first.await(`location.pathname === "/executions/2" || document.querySelector("#refused [role=alert]") || !document.querySelector("button.main")`)
		status, page := server.get("/executions?job=payments", &http.Client{Transport: bearer(annaToken)})
		require.Equal(t, http.StatusOK, status)
		require.NotContains(t, page, `href="/executions/3"`)
	})
}

func TestWhatWasTypedSurvivesAReloadAndAServerThatDies(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s, server := acting(t, dbURL, paymentsFiles())
		b := newTab(t, server.at, "typed")
		b.signIn(annaToken, "/jobs/payments/run")
		b.fill("params.file", "other.csv")
		b.fill("reason", "because")
		b.settle()
		b.mayBeAway()
		server.kill()
		s.serve()
		b.open("/jobs/payments/run")
		b.await(`document.querySelector('[name="params.file"]').value === "other.csv" && document.querySelector('[name="reason"]').value === "because"`)
		require.Contains(t, b.text("main"), "did not send, is filled in")
	})
}
