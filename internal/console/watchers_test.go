package console_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/changes"
	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const (
	watching   = 100
	ofOne      = changes.MaxListenersOfAClient
	watchTime  = 6 * time.Second
	watchLimit = 90 * time.Second
)

// waitJob waits for a file. The test changes its counters.
const waitJob = `job: wait
flow:
- step: wait
  tasklet: {shell: {script: 'until [ -e go ]; do sleep 0.1; done'}}
`

// served is a server with API and console at url, and one execution at another connection.
type served struct {
	*scene
	at    string // of the server with the API
	token []string
}

func serveWatched(t *testing.T, url string) *served {
	t.Helper()
	s := &served{scene: newScene(t, url)}
	registry, err := assembly.NewRegistry()
	require.NoError(t, err)
	jobs, err := catalog.New(registry, nil, s.dir)
	require.NoError(t, err)
	var clients []settings.Client
	for i := range (watching + ofOne - 1) / ofOne {
		s.token = append(s.token, fmt.Sprintf("viewer-%d-0123456789", i))
		clients = append(clients, settings.Client{Name: fmt.Sprintf("wall%d", i), Role: settings.Viewer, Token: s.token[i]})
	}
	looker := changes.New(s.app.Service.Changes, nil)
	handler, err := api.New(api.Config{
		Service: s.app.Service, Jobs: jobs, Tasks: s.app.Tasks, Clients: clients, Rate: 1e6, Changes: looker,
		Pages: func(guard *access.Guard, _ http.Handler) (http.Handler, error) {
			return console.New(guard, console.Config{Service: s.app.Service, Jobs: jobs, Tasks: s.app.Tasks, Stream: "/v1/stream", Looks: looker.Looks})
		},
	})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.at = server.URL
	return s
}

// watcher is a tab: it has a stream if the server admits it, and asks for the fragment at an event, or each second,
// at most once a second.
type watcher struct {
	*served
	path, token, tag string
	// asOf are the times of the numbers that it saw.
	asOf    map[string]bool
	shown   string
	answers map[int]int
	live    bool
	failure error
}

func (w *watcher) ask(ctx context.Context) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.at+w.path, nil)
	if err != nil {
		w.failure = err
		return
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("HX-Request", "true")
	r.Header.Set("If-None-Match", w.tag)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return // it has been ended
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	w.answers[got.StatusCode]++
	switch {
	case err != nil:
		return
	case got.StatusCode == http.StatusOK:
		w.tag, w.shown = got.Header.Get("ETag"), string(text)
	case got.StatusCode != http.StatusNotModified:
		w.failure = fmt.Errorf("%s: %s", got.Status, text)
	}
	w.asOf[got.Header.Get("Surfin-As-Of")] = true
}

// watch ends when the page says so.
func (w *watcher) watch(ctx context.Context, until func(shown string) bool) {
	changed := make(chan bool, 1)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.at+"/v1/stream?topic="+strings.NewReplacer("/", "", "executions", "execution:").Replace(w.path)+",step,progress", nil)
	if err != nil {
		w.failure = err
		return
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	stream, err := (&http.Transport{}).RoundTrip(r) //nolint:bodyclose // it is closed at the end
	if err != nil {
		w.failure = err
		return
	}
	defer stream.Body.Close()
	w.live = stream.StatusCode == http.StatusOK
	if w.live {
		go func() {
			for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "event: ") {
					select {
					case changed <- true:
					default:
					}
				}
			}
		}()
	}
	for ctx.Err() == nil && w.failure == nil && !until(w.shown) {
		began := time.Now()
		w.ask(ctx)
		next := time.After(time.Until(began.Add(time.Second)))
		if w.live {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// A hundred tabs show an execution that changes all the time: they share one rendering a second, and each of them
// shows its end.
func TestAHundredWatchersOfAnExecutionCostWhatOneDoes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		at, statements := url, func() int { return 0 }
		if strings.HasPrefix(url, "postgres") {
			proxy := testproxy.New(t, url)
			at, statements = proxy.URL(), proxy.Statements
		}
		s := serveWatched(t, at)
		s.write("wait.yaml", waitJob)
		set, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_TASKS_SHELL=true"}})
		require.NoError(t, err)
		app, err := batch.New(t.Context(), set, batch.Log(nil))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
		ended := make(chan error, 1)
		go func() {
			_, err := app.Run(context.WithoutCancel(t.Context()), operator.RunRequest{File: filepath.Join(s.dir, "wait.yaml")})
			ended <- err
		}()
		db := testengine.New(t, url)
		id := core.JobExecutionID(0)
		require.Eventually(t, func() bool {
			found, err := app.Progress(t.Context(), operator.ProgressRequest{})
			if err != nil || len(found) == 0 || found[0].Step == "" {
				return false
			}
			id = found[0].Execution
			return true
		}, 30*time.Second, 10*time.Millisecond)
		ctx, end := context.WithTimeout(t.Context(), watchLimit)
		defer end()
		var group sync.WaitGroup
		all := make([]*watcher, watching)
		for i := range all {
			all[i] = &watcher{served: s, path: "/executions/" + text(id), token: s.token[i/ofOne], asOf: map[string]bool{}, answers: map[int]int{}}
			group.Go(func() {
				all[i].watch(ctx, func(shown string) bool { return strings.Contains(shown, " completed</h1>") })
			})
		}
		changing, stop := context.WithCancel(ctx)
		defer stop()
		for n := range 20 { // until all of them watch
			change(changing, t, db, id, n)
		}
		before, began := statements(), time.Now()
		n := 20
		for time.Since(began) < watchTime {
			change(changing, t, db, id, n)
			n++
		}
		asked, seconds := statements()-before, time.Since(began).Seconds()
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
		require.NoError(t, <-ended)
		over := time.Now()
		group.Wait()
		live, renderings, answers := 0, map[string]bool{}, map[int]int{}
		for i, w := range all {
			require.NoError(t, w.failure, i)
			require.Contains(t, w.shown, " completed</h1>", i)
			if w.live {
				live++
			}
			for asOf := range w.asOf {
				renderings[asOf] = true
			}
			for status, n := range w.answers {
				answers[status] += n
			}
		}
		whole := time.Since(began).Seconds()
		t.Logf("%d changes, %.1f statements a second, %d renderings in %.1f s for answers %v; all saw the end after %v", n, float64(asked)/seconds, len(renderings), whole, answers, time.Since(over))
		require.Equal(t, changes.MaxListeners, live, "the others ask without a stream")
		require.LessOrEqual(t, float64(asked), 4*seconds+4, "statements in %.1f s", seconds)
		require.LessOrEqual(t, len(renderings), int(whole)+8)
	})
}

// change changes the counters as a committed chunk does, ten times a second.
func change(ctx context.Context, t *testing.T, db *testengine.Engine, id core.JobExecutionID, n int) {
	t.Helper()
	db.Exec(fmt.Sprintf("UPDATE surfin_step_execution SET read_count = %d, write_count = %d, commit_count = %d WHERE job_execution_id = %d", 10*n, 10*n, n, id))
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}
