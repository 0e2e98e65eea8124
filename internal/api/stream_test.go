package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/changes"
	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type streamed struct {
	name, id string // a comment has no name
	changes.Event
}

func (e streamed) String() string { return fmt.Sprintf("%s %d%s", e.name, e.Number, e.Name) }

type listening struct {
	t      *testing.T
	status int
	header http.Header
	text   string        // if it was refused
	events chan streamed // closed at the end
	end    func()
}

// listen opens a stream. It is open when the first comment has come.
func (s *server) listen(t *testing.T, token, query string, headers ...string) *listening {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/stream"+query, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := (&http.Transport{}).RoundTrip(r) //nolint:bodyclose // the reader closes it
	require.NoError(t, err)
	l := &listening{t: t, status: got.StatusCode, header: got.Header, events: make(chan streamed, 10_000), end: cancel}
	t.Cleanup(cancel)
	if got.StatusCode != http.StatusOK {
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		l.text = string(text)
		return l
	}
	lines := bufio.NewScanner(got.Body)
	require.True(t, lines.Scan())
	require.Equal(t, ": listening", lines.Text())
	go func() {
		defer close(l.events)
		defer got.Body.Close()
		var e streamed
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				if json.Unmarshal([]byte(value), &e.Event) != nil {
					e.name = "wrong data: " + value
				}
			case "":
				if e.id != "" {
					l.events <- e
				}
				e = streamed{}
			}
		}
	}()
	return l
}

// until collects events until one of them fits.
func (l *listening) until(fits func(e streamed) bool) []streamed {
	l.t.Helper()
	require.Equal(l.t, http.StatusOK, l.status, l.text)
	var all []streamed
	late := time.After(deadline)
	for {
		select {
		case e, open := <-l.events:
			require.True(l.t, open, "the stream has ended: %v", all)
			if e.name == "" {
				continue
			}
			if all = append(all, e); fits(e) {
				return all
			}
		case <-late:
			require.Fail(l.t, "the event does not come", "%v", all)
		}
	}
}

func is(name string) func(e streamed) bool {
	return func(e streamed) bool { return e.name == name }
}

func (l *listening) over() {
	l.t.Helper()
	late := time.After(deadline)
	for {
		select {
		case _, open := <-l.events:
			if !open {
				return
			}
		case <-late:
			require.Fail(l.t, "the stream does not end")
		}
	}
}

// Rule AP6.
func TestAStreamSaysWhatChangesInItsOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		s := scene.serve()
		all := s.listen(t, viewerToken, "")
		require.Equal(t, "text/event-stream", all.header.Get("Content-Type"))
		require.Equal(t, "no-store", all.header.Get("Cache-Control"))
		id := s.call("POST", "/v1/jobs/hold/run", nil).acted(true)
		one := s.listen(t, operatorToken, fmt.Sprintf("?topic=execution:%d,task", id))
		other := s.listen(t, operatorToken, fmt.Sprintf("?topic=execution:%d&topic=worker", id+1))
		scene.await(scene.holding, "it does not run")
		began := all.until(is("step"))
		require.Equal(t, fmt.Sprintf("execution %d", id), began[0].String())
		require.Equal(t, id, began[len(began)-1].Execution)
		scene.release()
		s.over(id, core.StatusCompleted)
		rest := all.until(is("execution"))
		one.until(is("execution"))
		require.Contains(t, fmt.Sprint(rest), "step")
		s.call("POST", "/v1/tasks", `{"type": "http_request", "delay": "1h"}`).is(200)
		all.until(is("task"))
		require.Equal(t, "task 1", one.until(is("task"))[0].String(), "nothing else")
		next := s.call("POST", "/v1/jobs/load/run", nil).acted(true)
		require.Equal(t, next, other.until(is("execution"))[0].Execution, "nothing of the other execution")
		s.over(next, core.StatusCompleted)
	})
}

func TestAStreamSaysThatCountersChange(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		s := scene.serve()
		id := s.call("POST", "/v1/jobs/hold/run", nil).acted(true)
		scene.await(scene.holding, "it does not run")
		l := s.listen(t, operatorToken, fmt.Sprintf("?topic=progress:%d", id))
		db, err := s.provider.Database(tx.Default)
		require.NoError(t, err)
		for range 2 {
			_, err = db.Conn().ExecContext(t.Context(), "UPDATE surfin_step_execution SET read_count = read_count + 7, commit_count = commit_count + 1 WHERE status = 'STARTED'")
			require.NoError(t, err)
			require.Equal(t, id, l.until(is("progress"))[0].Execution)
		}
	})
}

// Rule AP6.
func TestAStreamIsResumedAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		l := s.listen(t, operatorToken, "?topic=execution")
		first := s.call("POST", "/v1/jobs/load/run", nil).acted(true)
		s.over(first, core.StatusCompleted)
		after := s.call("POST", "/v1/jobs/broken/run", nil).acted(true)
		last := l.until(func(e streamed) bool { return e.Execution == after }) // all of the first one was before it
		l.end()
		require.Equal(t, first, last[0].Execution)
		second := s.call("POST", "/v1/jobs/nightly/run", nil).acted(true)
		s.over(second, core.StatusCompleted)
		resumed := s.listen(t, operatorToken, "?topic=execution", "Last-Event-ID", last[len(last)-1].id)
		for _, e := range resumed.until(func(e streamed) bool { return e.Execution == second }) {
			require.NotEqual(t, first, e.Execution, "what changed while nobody listened, and nothing before")
		}
		for _, unknown := range []string{"1", "0123456789ab-3", last[0].id + "000", "x-y-z"} {
			require.Len(t, s.listen(t, operatorToken, "?topic=worker", "Last-Event-ID", unknown).until(is("reset")), 1)
		}
	})
}

func TestARowThatIsCommittedLateIsAnEventAsWell(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t)).serve()
	db, err := s.provider.Database(tx.Default)
	require.NoError(t, err)
	insert := "INSERT INTO surfin_audit (at, act, job_execution_id) VALUES (" + gormtx.Now(db.Dialect()) + ", 'test', $1)"
	pool, err := db.Open()
	require.NoError(t, err)
	defer pool.Close()
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "BEGIN")
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), insert, 7)
	require.NoError(t, err)
	l := s.listen(t, operatorToken, "?topic=execution")
	_, err = db.Conn().ExecContext(t.Context(), insert, 8)
	require.NoError(t, err)
	require.EqualValues(t, 8, l.until(is("execution"))[0].Execution)
	_, err = conn.ExecContext(t.Context(), "COMMIT")
	require.NoError(t, err)
	require.EqualValues(t, 7, l.until(is("execution"))[0].Execution)
}

func TestListenersAreLimited(t *testing.T) {
	t.Parallel()
	many := clients()
	for i := range 8 {
		many = append(many, settings.Client{Name: fmt.Sprintf("wall%d", i), Role: settings.Viewer, Token: fmt.Sprintf("viewer-012345678%d", i)})
	}
	s := newScene(t, testdb.SQLite(t)).serve(func(c *api.Config) { c.Clients = many })
	var all []*listening
	opened := make(chan *listening)
	for i := range 8 {
		for range 8 {
			go func() { opened <- s.listen(t, fmt.Sprintf("viewer-012345678%d", i), "") }()
		}
	}
	for range 64 {
		l := <-opened
		require.Equal(t, http.StatusOK, l.status, l.text)
		all = append(all, l)
	}
	refused := s.listen(t, operatorToken, "")
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Contains(t, refused.text, "64 listeners")
	require.Equal(t, "5", refused.header.Get("Retry-After"))
	for _, l := range all {
		l.end()
	}
	require.Eventually(t, func() bool { return s.listen(t, operatorToken, "").status == http.StatusOK }, deadline, 50*time.Millisecond)
	for range 7 {
		s.listen(t, operatorToken, "")
	}
	refused = s.listen(t, operatorToken, "")
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Contains(t, refused.text, "client anna has 8 listeners")
	require.Equal(t, http.StatusOK, s.listen(t, viewerToken, "").status)
}

func TestAWrongStreamIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve()
	for query, says := range map[string]string{
		"?topic=colour": "allowed are execution, step", "?topic=execution:x": "after the colon", "?topic=task:0": "after the colon", "?topic=worker:": "after the colon",
		"?since=1": "allowed is topic", "?topic=" + strings.Repeat("task,", 200): "more than 100 topics",
	} {
		s.call("GET", "/v1/stream"+query, nil).is(422).says(says)
	}
	s.as("", "GET", "/v1/stream", nil).is(401)
	s.call("POST", "/v1/stream", nil).is(405)
	require.Equal(t, 200, s.call("HEAD", "/v1/stream", nil).status)
}

func TestTheEndOfTheServerEndsStreams(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		l := s.listen(t, operatorToken, "")
		began := time.Now()
		s.stop()
		require.Less(t, time.Since(began), 5*time.Second)
		l.over()
	})
}

func TestTimeOutsOfRequestsAndAnswersDoNotEndAStream(t *testing.T) {
	t.Parallel()
	scene := newScene(t, testdb.SQLite(t))
	config, _ := scene.config()
	handler, err := api.New(config)
	require.NoError(t, err)
	front := httptest.NewUnstartedServer(handler)
	front.Config.ReadTimeout, front.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	front.Start()
	t.Cleanup(front.Close)
	patient := httptest.NewServer(handler)
	t.Cleanup(patient.Close)
	l := (&server{scene: scene, url: front.URL}).listen(t, operatorToken, "?topic=execution")
	defer l.end()
	time.Sleep(time.Second)
	// A launch may take longer than these limits on a busy machine.
	(&server{scene: scene, url: patient.URL}).call("POST", "/v1/jobs/load/run", nil).is(200)
	l.until(is("execution"))
}

// Rule AP6.
func TestAStreamOutlivesADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	proxy := testproxy.New(t, url)
	scene := newScene(t, proxy.URL())
	s := scene.serve()
	t.Cleanup(func() {
		proxy.Heal()
		proxy.Thaw()
	})
	direct := newScene(t, url)
	other := direct.serve()
	l := s.listen(t, operatorToken, "?topic=execution")
	for _, away := range []struct{ begin, end func() }{{proxy.Cut, proxy.Heal}, {proxy.Freeze, proxy.Thaw}} {
		away.begin()
		l.until(is("away"))
		late := s.listen(t, viewerToken, "?topic=execution")
		late.until(is("away"))
		id := other.call("POST", "/v1/jobs/load/run", `{"again": true}`).acted(true)
		other.over(id, core.StatusCompleted)
		away.end()
		for _, one := range []*listening{l, late} {
			events := one.until(is("execution"))
			require.Equal(t, "back", events[0].name, "%v", events)
			require.Equal(t, id, events[len(events)-1].Execution, "what changed meanwhile")
		}
	}
}

// Rule AP6.
func TestTheDatabaseIsAskedOnceASecondAndOnlyForListeners(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, testdb.Postgres(t))
	s := newScene(t, proxy.URL()).serve()
	during := func() (statements int, seconds float64) {
		before, began := proxy.Statements(), time.Now()
		time.Sleep(3 * time.Second)
		return proxy.Statements() - before, time.Since(began).Seconds()
	}
	unasked := func() bool { n, _ := during(); return n == 0 }
	require.True(t, unasked(), "nobody listens")
	var all []*listening
	for range 5 {
		all = append(all, s.listen(t, operatorToken, ""))
	}
	asked, seconds := during()
	require.LessOrEqual(t, asked, int(seconds)+2, "one a second for all, and where the looker begins")
	for _, l := range all {
		l.end()
	}
	require.Eventually(t, unasked, deadline, time.Millisecond)
}
