package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	leakDatabase = "db-passw0rd-Zq7"
	leakViewer   = "viewer-token-8f3a2c1d"
	leakHook     = "hook-s3cret&value"
	leakProxy    = "pr0xy-passw0rd"
)

func leaks() []string { return []string{leakDatabase, leakViewer, serveToken, leakHook, leakProxy} }

func readersOf() map[string]string {
	return map[string]string{
		"csv":   `{csv: {path: "${params.input}", item: {a: int}}}`,
		"json":  `{json: {path: "${params.input}", item: {a: int}}}`,
		"jsonl": `{jsonl: {path: "${params.input}", item: {a: int}}}`,
		"lines": `{lines: {path: "${params.input}"}}`,
		"fixed": `{fixed: {path: "${params.input}", columns: {a: 1-4}, item: {a: int}}}`,
		"files": `{files: {glob: "${params.input}", reader: {csv: {item: {a: int}}}}}`,
	}
}

func leakFiles() map[string]string {
	files := map[string]string{
		"jobs/in.txt": "a\n1\n",
		"jobs/env.yaml": `job: env
flow:
- {step: own, tasklet: {shell: {script: "env; env >&2"}}}
- {step: parent, tasklet: {shell: {script: "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done 2>/dev/null; cat /proc/$PPID/environ >&2; exit 1"}}}
`,
		"jobs/skips.yaml": `job: skips
flow:
- {step: dump, tasklet: {shell: {script: "for p in /proc/[0-9]*; do tr '\\0,' '\\n.' < $p/environ; done > dump.tmp 2>/dev/null; grep SURFIN_ dump.tmp | sort -u > dump.txt"}}}
- step: load
  chunk:
    skip: {limit: 10000}
    reader: {csv: {path: dump.txt, header: false, item: {a: int}}}
    writer: {csv: {path: loaded.csv}}
`,
	}
	for name, reader := range readersOf() {
		files["jobs/r_"+name+".yaml"] = fmt.Sprintf("job: r_%s\nparameters: {input: {type: string, default: in.txt}, as: {type: path, default: in.txt}}\nflow:\n- step: read\n  chunk:\n    skip: {limit: 100}\n    reader: %s\n    writer: {lines: {path: \"out_%s.txt\"}}\n", name, reader, name)
	}
	return files
}

func withPassword(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	if u.Scheme == "sqlite" {
		return text
	}
	if u.User.Username() != "" {
		if _, has := u.User.Password(); has {
			return text
		}
		u.User = url.UserPassword(u.User.Username(), leakDatabase)
		return u.String()
	}
	query := u.Query()
	query.Set("password", leakDatabase)
	u.RawQuery = query.Encode()
	return u.String()
}

// Rules SE1 and SE3 to SE6.
func TestNoSecretOfTheServerIsStoredLoggedOrAnswered(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Header.Get("X-Hook")) //nolint:errcheck // of the test
		}))
		t.Cleanup(echo.Close)
		host := strings.TrimPrefix(echo.URL, "http://")
		s := newScene(t, withPassword(t, url), leakFiles())
		require.NoError(t, os.Symlink("/proc/self/environ", filepath.Join(s.dir, "jobs/link")))
		s.env = []string{
			"SURFIN_API_OPERATOR_TOKENS_CI=" + serveToken, "SURFIN_API_VIEWER_TOKENS_WALL=" + leakViewer, "SURFIN_SECRET_HOOK=" + leakHook,
			"SURFIN_DATABASES_OTHER=sqlite:other.db", "FTP_PROXY=http://me:" + leakProxy + "@proxy.example.org:3128", "SURFIN_TASKS_SHELL=true", "SURFIN_TASKS_SECRETS=hook@" + host,
			"SURFIN_API_RATE=10000", "SURFIN_LOG_LEVEL=debug", "SURFIN_LOG_EVENTS=" + filepath.Join(s.dir, "events.jsonl"), "PGPASSWORD=" + leakDatabase,
		}
		server := s.serve("--jobs", filepath.Join(s.dir, "jobs"))
		worker := s.start("worker", "--slots", "4")
		worker.await("waiting for work")
		var seen strings.Builder
		get := func(path string) string {
			text := server.get(leakViewer, path)
			seen.WriteString(text)
			return text
		}
		for name := range readersOf() {
			for _, path := range []string{"/proc/self/environ", "link", "../../../../../../../../../proc/self/environ", "/proc/self/../self/environ"} {
				for _, act := range []string{"run", "plan"} {
					status, answer := server.post("/v1/jobs/r_"+name+"/"+act, "", fmt.Sprintf(`{"params": {"input": %q}}`, path))
					fmt.Fprint(&seen, answer)
					require.GreaterOrEqual(t, status, 400, "%s %s %s: %v", act, name, path, answer)
					require.Contains(t, fmt.Sprint(answer), "outside the folders that clients may use")
				}
			}
			status, answer := server.post("/v1/jobs/r_"+name+"/run", "", `{"params": {"input": "in.txt"}}`)
			require.Equal(t, http.StatusOK, status, "%v", answer)
		}
		for _, name := range []string{"env", "skips"} {
			status, answer := server.post("/v1/jobs/"+name+"/run", "", `{}`)
			require.Equal(t, http.StatusOK, status, "%v", answer)
		}
		tasks := []string{
			`{"type": "shell", "payload": {"script": "env; for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done; exit 1"}}`,
			fmt.Sprintf(`{"type": "http_request", "payload": {"url": %q, "headers": {"X-Hook": "${secret.hook}", "Authorization": "Basic bGl0ZXJhbA=="}}}`, echo.URL),
			`{"type": "http_request", "payload": {"url": "http://127.0.0.1:1/", "headers": {"X-Hook": "${secret.hook}"}}}`,
			`{"type": "job", "payload": {"job": "r_csv", "params": {"input": "/proc/self/environ"}}}`,
		}
		for _, body := range tasks {
			status, answer := server.post("/v1/tasks", "", body)
			require.Equal(t, http.StatusOK, status, "%v", answer)
		}
		require.Eventually(t, func() bool {
			open := get("/v1/executions?limit=100")
			waiting := get("/v1/tasks?limit=100")
			return !strings.Contains(open, `"STARTED"`) && !strings.Contains(open, `"STARTING"`) && !strings.Contains(waiting, `"PENDING"`) && !strings.Contains(waiting, `"RUNNING"`) && !strings.Contains(waiting, `"ASSIGNED"`) && !strings.Contains(waiting, `"RETRY_SCHEDULED"`)
		}, 2*time.Minute, 200*time.Millisecond)
		for id := 1; id <= len(readersOf())*2+4; id++ {
			for _, view := range []string{"", "/explain", "/skips", "/plan", "/log"} {
				get(fmt.Sprintf("/v1/executions/%d%s", id, view))
			}
		}
		for id := 1; id <= len(tasks); id++ {
			get(fmt.Sprintf("/v1/tasks/%d", id))
		}
		var list struct {
			Executions []struct{ Execution int64 }
		}
		require.NoError(t, json.Unmarshal([]byte(get("/v1/executions?job=skips")), &list))
		require.Len(t, list.Executions, 1)
		require.Contains(t, get(fmt.Sprintf("/v1/executions/%d/skips", list.Executions[0].Execution)), "***")
		status, answer := server.post(fmt.Sprintf("/v1/executions/%d/redrive", list.Executions[0].Execution), "", `{}`)
		require.Equal(t, http.StatusOK, status, "lines without a secret are redriven: %v", answer)
		require.Contains(t, fmt.Sprint(answer), "a secret in it was masked when it was stored")
		require.Contains(t, get("/v1/tasks/2"), "***")
		require.NotContains(t, get("/v1/tasks/2"), "bGl0ZXJhbA", "viewers see no header")
		require.Contains(t, server.get(serveToken, "/v1/tasks/2"), "bGl0ZXJhbA", "operators do")
		require.Contains(t, get("/v1/tasks/4"), "outside the folders that clients may use", "a worker runs the job of a client's task")
		require.Contains(t, get("/v1/tasks/3"), "tasks must not send this secret to 127.0.0.1:1")
		logs := ""
		for id := 1; id <= len(readersOf())*2+4; id++ {
			logs += get(fmt.Sprintf("/v1/executions/%d/log", id))
		}
		require.Contains(t, logs, "***", "outputs are masked")
		for _, args := range [][]string{{"list"}, {"show", "1"}, {"skips", "list", "8"}, {"tasks", "show", "1"}} {
			_, text := s.run(args...)
			seen.WriteString(text)
		}
		seen.WriteString(server.out.String() + worker.out.String())
		events, err := os.ReadFile(filepath.Join(s.dir, "events.jsonl"))
		require.NoError(t, err)
		seen.Write(events)
		db, _ := s.open()
		stored := everyRow(t, db)
		require.Contains(t, stored, "***")
		for _, secret := range leaks() {
			for what, text := range map[string]string{"answers and logs": seen.String(), "tables": stored} {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s have the secret %s: %s", what, secret, text[max(0, at-300):min(len(text), at+100)])
				}
			}
		}
	})
}

func (s *served) get(token, path string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.address+path, nil)
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	got, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer got.Body.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return string(text)
}

func everyRow(t *testing.T, db tx.Database) string {
	t.Helper()
	find := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if db.Dialect() == tx.Postgres {
		find = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	var all strings.Builder
	for _, table := range query(t, db, find) {
		for _, row := range query(t, db, "SELECT * FROM "+db.Dialect().Quote(table)) {
			all.WriteString(table + ": " + row + "\n")
		}
	}
	return all.String()
}

func query(t *testing.T, db tx.Database, text string) (lines []string) {
	t.Helper()
	rows, err := db.Conn().QueryContext(t.Context(), text)
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // they are read
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		words := make([]string, len(values))
		for i, value := range values {
			if b, is := value.([]byte); is {
				value = string(b)
			}
			words[i] = fmt.Sprint(value)
		}
		lines = append(lines, strings.Join(words, "\t"))
	}
	require.NoError(t, rows.Err())
	return lines
}
