package browser

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const gateJob = `job: gate
description: Waits for a file.
parameters: {n: {type: int}}
flow:
- step: wait
  tasklet: {shell: {script: 'until [ -e "go-$N" ]; do sleep 0.1; done', env: {N: "${string(params.n)}"}}}
- step: after
  tasklet: {sql: select 1}
`

// freePort is one that a server may have, and another one after it.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestAPageSaysThatTheServerIsAwayAndRecovers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/gate.yaml": gateJob})
		s.env = append(s.env, "SURFIN_API_LISTEN="+freePort(t))
		s.does(0, "migrate")
		run := s.start("run", "jobs/gate.yaml", "n=1")
		run.await("step started")
		server := s.serve()
		b := newTab(t, server.at, "away")
		b.open("/executions/1")
		b.await(`document.querySelector("h1").innerText.includes("running")`)
		b.mayBeAway()
		server.kill()
		b.await(`document.getElementById("live").innerText.includes("The server does not answer: these numbers are as of 20")`)
		b.look("away")
		s.write("jobs/go-1", "")
		<-run.done
		require.Zero(t, run.code, run.out.String())
		s.serve()
		b.await(`document.querySelector("h1").innerText === "Execution 1 of job gate completed"`)
		b.await(`document.getElementById("live").innerText === ""`)
		b.await(`document.title.includes("COMPLETED")`)
		b.look("back")
	})
}

// A browser gives a host six connections. A tab that is hidden has no stream, so the others load and follow.
func TestTenTabsOnRunningExecutionsFollow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/gate.yaml": gateJob})
		s.does(0, "migrate")
		const n = 10
		var runs []*process
		for i := range n {
			run := s.start("run", "jobs/gate.yaml", "n="+strconv.Itoa(i))
			run.await("step started")
			runs = append(runs, run)
		}
		server := s.serve()
		first := newTab(t, server.at, "tabs")
		tabs := []*tab{first}
		for range n - 1 {
			tabs = append(tabs, first.beside())
		}
		for i, b := range tabs {
			b.show()
			b.await(`!document.hidden`)
			b.open("/executions/" + strconv.Itoa(i+1))
		}
		first.await(`document.hidden`)
		for i, b := range tabs {
			b.show()
			s.write("jobs/go-"+strconv.Itoa(i), "")
			b.await(`document.querySelector("h1").innerText.includes("completed")`)
			b.await(`document.title.includes("COMPLETED")`)
		}
		for _, run := range runs {
			<-run.done
			require.Zero(t, run.code, run.out.String())
		}
	})
}

// beside is another tab of the same profile.
func (b *tab) beside() *tab {
	b.t.Helper()
	profile := chromedp.FromContext(b.ctx).BrowserContextID
	return newTab(b.t, b.at, b.name, chromedp.WithExistingBrowserContext(profile), chromedp.WithNewWindow(false))
}

// show brings the tab to the front: the others of its window are hidden.
func (b *tab) show() {
	b.t.Helper()
	_, err := chromedp.CallBrowser(b.ctx, target.ActivateTarget, target.ActivateTargetParams{TargetID: chromedp.FromContext(b.ctx).Target.TargetID})
	require.NoError(b.t, err)
}

// mayBeAway takes it from here on as expected that the server does not answer.
func (b *tab) mayBeAway() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = true
}
