package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const serveToken = "token-0123456789abcdef"

type served struct {
	*process
	t       *testing.T
	address string // of the API
}

var announced = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/v1`)

func (s *scene) serve(args ...string) *served {
	s.t.Helper()
	s.env = append(s.env, "SURFIN_API_LISTEN=127.0.0.1:0")
	p := s.start(append([]string{"serve"}, args...)...)
	p.await("the API is at ")
	found := announced.FindStringSubmatch(p.out.String())
	require.NotNil(s.t, found, p.out.String())
	return &served{p, s.t, found[1]}
}

// post returns the answer to a POST with a key; nil if the server has died.
func (s *served) post(path, key, body string) (status int, answer map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+s.address+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+serveToken)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	got, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, nil
	}
	require.NoError(s.t, json.Unmarshal(text, &answer), "%s", text)
	return got.StatusCode, answer
}

const servedJob = `job: quick
flow:
- step: one
  tasklet: {sql: create table if not exists ran (id int); insert into ran values (1)}
`

// Rule L11.
func TestARequestThatIsRepeatedAfterAKillStartsOneExecution(t *testing.T) {
	t.Parallel()
	const rounds = 8
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/quick.yaml": servedJob})
		s.env = []string{"SURFIN_API_OPERATOR_TOKENS_CI=" + serveToken}
		_, r := s.open()
		lost := 0
		server := s.serve("--jobs", "jobs")
		for round := range rounds {
			key := fmt.Sprintf("round-%d", round)
			sent := make(chan map[string]any, 1)
			go func() {
				_, answer := server.post("/v1/jobs/quick/run", key, `{"again": true}`)
				sent <- answer
			}()
			time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond)))) // the moment of the kill is random here
			server.signal(syscall.SIGKILL)
			server.wait()
			first := <-sent
			if first == nil {
				lost++
			}
			server = s.serve("--jobs", "jobs")
			status, second := server.post("/v1/jobs/quick/run", key, `{"again": true}`)
			require.Equal(t, http.StatusOK, status, "%v", second)
			if first != nil {
				require.Equal(t, first, second)
			}
			_, third := server.post("/v1/jobs/quick/run", key, `{"again": true}`)
			require.Equal(t, second, third)
			executions, err := r.Executions(t.Context(), ports.ExecutionFilter{})
			require.NoError(t, err)
			require.Len(t, executions, round+1)
			require.EqualValues(t, executions[0].ID, second["id"])
			status, answer := server.post("/v1/recover", "", "")
			require.Equal(t, http.StatusOK, status, "%v", answer)
			require.Eventually(t, func() bool {
				e, err := r.Execution(t.Context(), executions[0].ID)
				return err == nil && e.Status.IsOver()
			}, 30*time.Second, 10*time.Millisecond)
			if e, err := r.Execution(t.Context(), executions[0].ID); err == nil && e.Status == core.StatusFailed {
				status, restarted := server.post(fmt.Sprintf("/v1/executions/%d/abandon", e.ID), "", "")
				require.Equal(t, http.StatusOK, status, "%v", restarted)
			}
		}
		t.Logf("%d of %d answers were lost", lost, rounds)
		server.signal(syscall.SIGTERM)
		code, out := server.wait()
		require.Zero(t, code, out)
	})
}

func TestServeIsRefusedWhereItWouldBeOpenToOthersOrHasNoJobs(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"jobs/quick.yaml": servedJob, "empty/x.txt": ""})
	for want, args := range map[string][]string{
		"api.operator_tokens.NAME": {"--jobs", "jobs", "--listen", "0.0.0.0:0"},
		"which jobs may be run?":   {},
		"no file *.yaml or *.yml":  {"--jobs", "empty"},
		"no such file":             {"--jobs", "nowhere"},
		"is not HOST:PORT":         {"--jobs", "jobs", "--listen", "8321"},
		"both define job quick":    {"--jobs", "jobs", "--jobs", "twin.yaml"},
		"twin.yaml:":               {"--jobs", "jobs", "--jobs", "twin.yaml"},
	} {
		s.write("twin.yaml", servedJob)
		if want == "twin.yaml:" {
			s.write("twin.yaml", "job: twin\nflw: []\n")
		}
		code, out := s.run(append([]string{"serve"}, args...)...)
		require.Equal(t, 2, code, out)
		require.Contains(t, out, want)
	}
}

func TestTheCallsOfTheAPIPageDoWhatItSays(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "jobs"), 0o700))
		page := blocks(t, "api.md")
		s.writeNamed(page)
		var server *served
		calls := 0
		for _, b := range page {
			if name, ok := strings.CutPrefix(b.comment, "file "); ok {
				s.write(name, b.text)
			}
			switch line := strings.TrimSpace(b.text); {
			case b.language != "sh":
			case strings.HasPrefix(line, "surfin "):
				words := commandWords(t, line)
				require.Equal(t, "serve", words[0])
				server = s.serve(words[1:]...)
			default:
				calls++
				server.assertCall(line, b.comment)
			}
		}
		require.GreaterOrEqual(t, calls, 7)
		server.signal(syscall.SIGTERM)
		code, out := server.wait()
		require.Zero(t, code, out)
		require.NotContains(t, out, "change-me")
	})
}

func (s *served) assertCall(line, comment string) {
	s.t.Helper()
	want, once := strings.CutPrefix(comment, "answers ")
	if text, ok := strings.CutPrefix(comment, "until "); ok {
		want, once = text, false
	}
	var said string
	holds := func() bool {
		said = s.curl(line)
		return strings.Contains(said, want)
	}
	if once || comment == "" {
		require.True(s.t, holds(), "%s\n%s\nlacks %s", line, said, want)
		return
	}
	require.Eventually(s.t, holds, 30*time.Second, 50*time.Millisecond, "%s lacks %s", line, want)
}

func (s *served) curl(line string) string {
	s.t.Helper()
	out, err := testtree.Command(s.t.Context(), "sh", "-c", `curl() { printf '%s\n' "$@"; }; `+line).Output()
	require.NoError(s.t, err, line)
	words := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	method, body, header := http.MethodGet, "", http.Header{}
	var user, address string
	for i := 0; i < len(words); i++ {
		option := words[i]
		if strings.HasPrefix(option, "-") && option != "-s" {
			i++
		}
		switch option {
		case "-s":
		case "-H":
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "-d":
			method, body = http.MethodPost, words[i]
		case "-X":
			method = words[i]
		case "-u":
			user = words[i]
		default:
			address = strings.Replace(option, "127.0.0.1:8321", s.address, 1)
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, bytes.NewReader([]byte(body)))
	require.NoError(s.t, err)
	req.Header = header
	if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl does
	}
	if name, password, ok := strings.Cut(user, ":"); ok {
		req.SetBasicAuth(name, password)
	}
	got, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return string(text)
}
