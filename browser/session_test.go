package browser

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

// The tokens of clients anna, an operator, and wall, a viewer.
const (
	annaToken = "anna-0123456789abcdef"
	wallToken = "wall-0123456789abcdef"
)

func tokens() []string {
	return []string{"SURFIN_API_OPERATOR_TOKENS_ANNA=" + annaToken, "SURFIN_API_VIEWER_TOKENS_WALL=" + wallToken}
}

// signs enters a token at the sign-in, and returns the status of the page that follows.
func (b *tab) signs(token string) int64 {
	b.t.Helper()
	b.await(`document.activeElement.id === "token"`)
	b.do(press(token))
	return b.goes(press(kb.Enter))
}

// signIn signs in with a token, and goes to a page.
func (b *tab) signIn(token, path string) {
	b.t.Helper()
	b.open(path)
	require.Contains(b.t, b.path(), "/login?next=")
	require.EqualValues(b.t, http.StatusOK, b.signs(token))
	require.Equal(b.t, path, b.path())
}

func TestASessionOutlivesTheServerAndEndsWithItsToken(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s := newScene(t, dbURL, map[string]string{"jobs/gate.yaml": gateJob})
		s.env = append(append(s.env, "SURFIN_API_LISTEN="+freePort(t)), tokens()...)
		s.does(0, "migrate")
		run := s.start("run", "jobs/gate.yaml", "n=1")
		run.await("step started")
		server := s.serve()
		const address = "/executions/1?element=wait"
		b := newTab(t, server.at, "session")
		b.signIn(annaToken, address)
		require.Contains(t, b.text("header"), "anna")
		b.await(`document.querySelector("h1").innerText.includes("running")`)

		b.mayBeAway()
		server.kill()
		b.await(`document.getElementById("live").innerText.includes("The server does not answer: these numbers are as of 20")`)
		server = s.serve()
		s.write("jobs/go-1", "")
		<-run.done
		require.Zero(t, run.code, run.out.String())
		b.await(`document.querySelector("h1").innerText === "Execution 1 of job gate completed"`)
		b.await(`document.getElementById("live").innerText === ""`)
		require.Equal(t, address, b.path())

		server.kill()
		s.env = append(s.env, "SURFIN_API_OPERATOR_TOKENS_ANNA=changed-"+annaToken)
		b.refused = true
		s.serve()
		b.await(`document.getElementById("live").innerText.includes("The session is over")`)
		require.Equal(t, "Execution 1 of job gate completed", b.text("h1"))
		b.open(address)
		require.Equal(t, "The session is over: sign in again", b.text("h1"))
		b.look("over")
		require.EqualValues(t, http.StatusUnauthorized, b.signs(annaToken))
		require.EqualValues(t, http.StatusOK, b.signs("changed-"+annaToken))
		require.Equal(t, address, b.path())
		require.EqualValues(t, http.StatusOK, b.goes(chromedp.Click(chromedp.CSS("form.out button"))))
		require.Equal(t, "/login", b.path())
		b.open(address)
		require.Equal(t, "Sign in", b.text("h1"))
	})
}

func TestTheSignInSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		proxy := (*testproxy.Proxy)(nil)
		if isPostgres(dbURL) {
			proxy = testproxy.New(t, dbURL)
			dbURL = proxy.URL()
		}
		s := newScene(t, dbURL, paymentsFiles())
		s.env = append(append(s.env, "SURFIN_API_RATE=8"), tokens()...)
		s.does(0, "migrate")
		server := s.serve()
		b := newTab(t, server.at, "sign-in")
		b.refused = true
		b.open("/executions")
		b.look("sign-in")
		require.EqualValues(t, http.StatusUnauthorized, b.signs("nobody-0123456789"))
		require.Contains(t, b.text("#wrong"), "the token belongs to no client")
		b.look("unknown-token")
		status, guessing := int64(http.StatusUnauthorized), server.guess()
		for tries := 0; status == http.StatusUnauthorized; tries++ {
			require.Less(t, tries, 50, "unknown tokens are not limited")
			status = b.signs("nobody-0123456789")
		}
		guessing()
		require.EqualValues(t, http.StatusTooManyRequests, status)
		require.Contains(t, b.text("#wrong"), "Try again in 1 second.")
		b.look("too-many")
		if proxy != nil {
			proxy.Cut()
			for tries := 0; status == http.StatusTooManyRequests && tries < 10; tries++ {
				status = b.signs(annaToken)
			}
			require.EqualValues(t, http.StatusServiceUnavailable, status)
			require.Contains(t, b.text("#wrong"), "the database does not answer. Try again in 5 seconds.")
			b.look("away")
			proxy.Heal()
		}
		for tries := 0; status != http.StatusOK; tries++ { // the rate of guesses may still count
			require.Less(t, tries, 10)
			status = b.signs(annaToken)
		}
		require.Equal(t, "/executions", b.path())
	})
}

// guess tries unknown tokens faster than a browser does, until end.
func (s *served) guess() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at+"/login?token=guessed", nil)
			if err != nil {
				return
			}
			if got, err := http.DefaultClient.Do(r); err == nil {
				_ = got.Body.Close() //nolint:errcheck // its answer does not matter
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

func TestWithoutJavaScriptAPlainClientSignsIn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s := newScene(t, dbURL, paymentsFiles())
		s.env = append(s.env, tokens()...)
		s.does(1, "run", "jobs/payments.yaml")
		server := s.serve()
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Jar: jar}
		_, page := server.get("/executions/1", client)
		action := regexp.MustCompile(`<form class="signin" method="post" action="([^"]*)"`).FindStringSubmatch(page)
		require.NotNil(t, action, page)
		status, page := server.post(action[1], url.Values{"token": {wallToken}}, client)
		require.Equal(t, http.StatusOK, status)
		assertWhy(t, withoutTags(page))
		require.Contains(t, withoutTags(page), "read only, as wall")
		_, page = server.post("/logout", nil, client)
		require.Contains(t, page, "<h1>Sign in</h1>")
	})
}
