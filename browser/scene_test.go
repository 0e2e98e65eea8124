package browser

import (
	"bytes"
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scene is a folder with job files, and a database.
type scene struct {
	t   testing.TB
	dir string
	env []string
	url string // of the database
}

func newScene(t testing.TB, url string, files map[string]string) *scene {
	t.Helper()
	return newSceneIn(t, t.TempDir(), url, files)
}

func newSceneIn(t testing.TB, dir, url string, files map[string]string) *scene {
	t.Helper()
	s := &scene{t: t, dir: dir, url: url, env: []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true", "SURFIN_API_LISTEN=127.0.0.1:0"}}
	for name, text := range files {
		s.write(name, text)
	}
	return s
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // of a test
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// run runs the program to its end, and returns its code and output.
func (s *scene) run(args ...string) (int, string) {
	s.t.Helper()
	p := s.start(args...)
	<-p.done
	return p.code, p.out.String()
}

// does runs the program, which must end with this code.
func (s *scene) does(code int, args ...string) string {
	s.t.Helper()
	got, out := s.run(args...)
	require.Equal(s.t, code, got, "surfin %s\n%s", strings.Join(args, " "), out)
	return out
}

type process struct {
	*exec.Cmd
	t    testing.TB
	out  output
	done chan struct{}
	code int
}

func (s *scene) start(args ...string) *process {
	s.t.Helper()
	p := &process{Cmd: exec.CommandContext(context.Background(), surfin, args...), t: s.t, done: make(chan struct{})} //nolint:gosec // of a test
	p.Dir = s.dir
	p.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "SURFIN_") }), s.env...)
	p.Stdout, p.Stderr = &p.out, &p.out
	require.NoError(s.t, p.Start())
	go func() {
		defer close(p.done)
		var exit *exec.ExitError
		if err := p.Wait(); errors.As(err, &exit) {
			p.code = exit.ExitCode() // -1 when killed
		} else if err != nil {
			p.code = -2
		}
	}()
	s.t.Cleanup(p.kill)
	return p
}

func (p *process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.Process.Signal(sig) //nolint:errcheck // it may end at this very moment
	}
}

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// await waits for a text in the output.
func (p *process) await(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		return strings.Contains(p.out.String(), text)
	}, patience, 5*time.Millisecond, "%s says no %q", strings.Join(p.Args, " "), text)
}

type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

type served struct {
	*process
	at string
}

// serve starts the server of the folder jobs.
func (s *scene) serve(args ...string) *served {
	s.t.Helper()
	p := s.start(append([]string{"serve", "--jobs", "jobs"}, args...)...)
	p.await("the API is at ")
	found := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(p.out.String())
	require.NotEmpty(s.t, found, p.out.String())
	return &served{p, found}
}

// get asks for a page as a plain client does.
func (s *served) get(path string, client *http.Client) (int, string) {
	s.t.Helper()
	return s.ask(http.MethodGet, path, nil, client)
}

// post sends a form as a plain client does.
func (s *served) post(path string, form url.Values, client *http.Client) (int, string) {
	s.t.Helper()
	return s.ask(http.MethodPost, path, strings.NewReader(form.Encode()), client)
}

func (s *served) ask(method, path string, body io.Reader, client *http.Client) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.at+path, body)
	require.NoError(s.t, err)
	r.Header.Set("Accept", "text/html")
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	got, err := client.Do(r)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return got.StatusCode, string(text)
}

// withoutTags is the text of a page.
func withoutTags(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " "))), " ")
}

func isPostgres(url string) bool { return strings.HasPrefix(url, "postgres") }

func (s *scene) worker() *process {
	s.t.Helper()
	return s.start("worker", "--slots", "4", "--poll", "20ms")
}
