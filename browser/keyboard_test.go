package browser

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestEveryKeyDoesWhatTheListOfKeysSays(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		b := newTab(t, s.serve().at, "keys")
		b.open("/")
		b.do(press("?"))
		b.await(`document.getElementById("keyhelp").open`)
		b.lookAt("keys", twoViews())
		b.do(press(kb.Escape))
		b.await(`!document.getElementById("keyhelp").open`)
		for _, open := range []chromedp.Action[chromedp.Void]{press("/"), controlK()} {
			b.do(open)
			b.await(`document.getElementById("palette").open && document.activeElement.closest("#palette")`)
			b.do(press("pay"))
			b.await(`document.querySelector("#palette a[href='/jobs/payments']")`)
			b.settle()
			b.lookAt("palette", twoViews())
			b.do(press(kb.Escape))
			b.await(`!document.getElementById("palette").open`)
		}
		b.findsTheLastText()
		for _, to := range []struct{ key, path string }{{"n", "/"}, {"j", "/jobs"}, {"e", "/executions"}, {"s", "/schedules"}, {"w", "/workers"}, {"t", "/tasks"}} {
			require.EqualValues(t, 200, b.goes(press("g"+to.key)), to.key)
			require.Equal(t, to.path, b.path())
		}
		b.open("/executions/1")
		require.EqualValues(t, 200, b.goes(press("]")))
		require.NotEqual(t, "/executions/1", b.path())
		require.EqualValues(t, 200, b.goes(press("[")))
		require.Equal(t, "/executions/1", b.path())
		// A key that is typed is a text.
		b.open("/executions")
		b.do(chromedp.Focus(chromedp.CSS("main input[name=text]")), press("?g/j"))
		require.Equal(t, "?g/j", evaluate[string](b, `document.activeElement.value`))
		require.Equal(t, "/executions", b.path())
		for _, path := range []string{"/", "/executions", "/executions/1", "/executions/1/log", "/jobs/payments"} {
			b.open(path)
			b.reachesAll()
		}
	})
}

// findsTheLastText types into the palette while the answers to earlier texts are on their way.
func (b *tab) findsTheLastText() {
	b.t.Helper()
	b.slow(time.Second)
	b.await(`document.activeElement === document.body`) // an input that was closed has the focus for a moment
	b.do(press("/"))
	b.await(`document.getElementById("palette").open && document.activeElement.closest("#palette")`)
	for _, text := range []string{"x", "y", "z", kb.Backspace + kb.Backspace + kb.Backspace + "payments"} {
		b.do(press(text))
		time.Sleep(250 * time.Millisecond) // the palette asks
	}
	b.await(`document.querySelector("#palette a[href='/jobs/payments']")`)
	b.slow(0)
	b.do(press(kb.Escape))
	b.await(`!document.getElementById("palette").open`)
}

// slow delays all answers from now on.
func (b *tab) slow(latency time.Duration) {
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		conditions := []*network.Conditions{{Latency: float64(latency.Milliseconds()), DownloadThroughput: -1, UploadThroughput: -1}}
		_, err := cdp.Call(ctx, target, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: conditions})
		return err
	}))
}

// controlK presses Ctrl-K.
func controlK() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
			const control = 2
			e := input.DispatchKeyEventParams{Type: kind, Key: "k", Code: "KeyK", WindowsVirtualKeyCode: 'K', Modifiers: control}
			if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// reachesAll presses the tab key until all that can be used was reached.
func (b *tab) reachesAll() {
	b.t.Helper()
	const usable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")].filter(e => e.checkVisibility({visibilityProperty: true}))`
	n := evaluate[int](b, usable+`.length`)
	b.do(chromedp.Evaluate[chromedp.Void](`window.reached = new Set(); addEventListener("focusin", e => reached.add(e.target))`))
	for range n + 20 {
		b.do(press(kb.Tab))
	}
	missed := evaluate[[]string](b, usable+`.filter(e => !reached.has(e)).map(e => e.outerHTML.slice(0, 120))`)
	require.Empty(b.t, missed, "the tab key does not reach them at %s", b.where())
}

// A live update changes the text of a page, and nothing that a person does in it.
func TestALiveUpdateKeepsWhatAPersonDoes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/gate.yaml": gateJob})
		s.does(0, "migrate")
		run := s.start("run", "jobs/gate.yaml", "n=1")
		run.await("step started")
		server := s.serve()
		log, first := newTab(t, server.at, "typed"), newTab(t, server.at, "read")
		for b, path := range map[*tab]string{log: "/executions/1/log", first: "/executions/1"} {
			b.open(path)
			b.do(stays(), chromedp.EmulateViewport(800, 300))
			b.await(`document.title.includes("STARTED")`)
		}
		log.do(chromedp.Focus(chromedp.CSS("main input[name=text]")), press("half a word"))
		log.do(chromedp.Evaluate[chromedp.Void](`(() => { const i = document.activeElement; i.setSelectionRange(5, 8); scrollTo(0, 40); })()`))
		first.do(chromedp.Evaluate[chromedp.Void](`(() => {
			document.querySelector("main details").open = true;
			getSelection().selectAllChildren(document.querySelector("main dl.strip dt"));
			document.querySelector("main nav.tabs a[href$=log]").focus();
			scrollTo(0, 120);
		})()`))
		selected := evaluate[string](first, `getSelection().toString()`)
		require.NotEmpty(t, selected)
		s.write("jobs/go-1", "")
		<-run.done
		require.Zero(t, run.code, run.out.String())
		for _, b := range []*tab{log, first} {
			b.await(`document.title.includes("COMPLETED")`)
			b.settle()
			require.True(t, evaluate[bool](b, `document.stays === true`), "the page was loaded again")
		}
		require.Equal(t, []any{"text", "half a word", 5.0, 8.0, 40.0}, evaluate[[]any](log,
			`(e => [e.name, e.value, e.selectionStart, e.selectionEnd, scrollY])(document.activeElement)`))
		require.Equal(t, []any{true, selected, "/executions/1/log", 120.0}, evaluate[[]any](first,
			`[document.querySelector("main details").open, getSelection().toString(), document.activeElement.getAttribute("href"), scrollY]`))
	})
}
