package acceptance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/testdb"
)

type attempt struct {
	// path is an element of a flow in which the component opens the path
	// ${params.input}.
	path string
	// quote is an element in which the component reads or makes a text with a
	// secret, in its forms, that it may quote; empty means that it quotes no
	// text.
	quote string
	not   string
}

func reading(reader, path string) string {
	return "step: read\n  chunk:\n    skip: {limit: 1000}\n    reader: " + strings.ReplaceAll(reader, "PATH", path) + "\n    writer: {csv: {path: \"out-${job.instance}.csv\"}}"
}

func reader(text string) attempt {
	return attempt{path: reading(text, `"${params.input}"`), quote: reading(text, "leaky.txt")}
}

func writer(text string) attempt {
	const step = "step: write\n  chunk:\n    skip: {limit: 1000}\n    reader: {lines: {path: leaky.txt, item: {text: string}}}\n    processor: [{map: {only: true, a: string(int(item.text))}}]\n    writer: "
	return attempt{path: step + strings.ReplaceAll(text, "PATH", `"${params.input}"`), quote: step + strings.ReplaceAll(text, "PATH", `"out-${job.instance}.csv"`)}
}

func processor(text string) attempt {
	return attempt{quote: "step: process\n  chunk:\n    skip: {limit: 1000}\n    reader: {lines: {path: leaky.txt, item: {text: string}}}\n    processor: [" + text + "]\n    writer: {csv: {path: \"out-${job.instance}.csv\"}}"}
}

func tasklet(path, quote string) attempt {
	a := attempt{}
	if path != "" {
		a.path = "step: do\n  tasklet: {" + strings.ReplaceAll(path, "PATH", `"${params.input}"`) + "}"
	}
	if quote != "" {
		a.quote = "step: do\n  tasklet: {" + quote + "}"
	}
	return a
}

func attempts() map[string]attempt {
	const csv = `{csv: {path: PATH, item: {a: int}}}`
	const inner = `{csv: {path: in.txt, item: {a: int}}}`
	list := map[string]attempt{
		"reader csv":        reader(csv),
		"reader json":       {path: reader(`{json: {path: PATH, item: {a: int}}}`).path, quote: reading(`{json: {path: leaky.json, item: {a: int}}}`, "")},
		"reader jsonl":      reader(`{jsonl: {path: PATH, item: {a: int}}}`),
		"reader lines":      {path: reader(`{lines: {path: PATH}}`).path, quote: processor(`{map: {a: int(item.text)}}`).quote},
		"reader fixed":      reader(`{fixed: {path: PATH, columns: {a: 1-60}, item: {a: int}}}`),
		"reader files":      reader(`{files: {glob: PATH, reader: {csv: {item: {a: int}}}}}`),
		"reader group":      reader(`{group: {reader: ` + csv + `, key: [a], n: count()}}`),
		"reader merge":      reader(`{merge: {key: [a], left: ` + inner + `, right: ` + csv + `}}`),
		"reader http":       {quote: reading(`{http: {url: "URL/", items: data, item: {a: int}}}`, "")},
		"reader query":      {quote: reading(`{query: {sql: "select a from leaky order by a", key: [a], item: {a: int}}}`, "")},
		"reader skips":      {not: "it reads the skipped items of an execution, which are masked when they are stored"},
		"writer csv":        writer(`{csv: {path: PATH}}`),
		"writer json":       writer(`{json: {path: PATH}}`),
		"writer jsonl":      writer(`{jsonl: {path: PATH}}`),
		"writer lines":      writer(`{lines: {path: PATH}}`),
		"writer fixed":      writer(`{fixed: {path: PATH, columns: {a: 1-20}}}`),
		"writer route":      writer(`{route: {to: [{writer: {csv: {path: PATH}}}]}}`),
		"processor map":     processor(`{map: {a: int(item.text)}}`),
		"processor filter":  processor(`{filter: "int(item.text) > 0"}`),
		"tasklet fail":      tasklet("", `fail: {message: "it says ${secret.hook}"}`),
		"tasklet files":     tasklet(`files: {copy: PATH, to: copies}`, ""),
		"tasklet http":      tasklet("", `http: {url: "URL/", out: {id: {type: int, from: data.id}}}`),
		"tasklet mail":      tasklet(`mail: {host: 127.0.0.1, port: 1, from: a@example.org, to: [b@example.org], subject: x, text: x, attachments: [PATH]}`, ""),
		"tasklet migration": tasklet(`migration: {dir: PATH}`, ""),
		"tasklet shell":     tasklet(`shell: {script: "cat in.txt", dir: PATH}`, `shell: {script: "cat leaky.txt; cat leaky.txt >&2; exit 1"}`),
		"tasklet wait_file": tasklet(`wait_file: {path: PATH, timeout: 1s}`, ""),
		"partitioner lines": {path: "step: parts\n  partition: {by: {lines: {path: \"${params.input}\", parts: 2}}}\n  chunk:\n    reader: {csv: {path: \"${part.path}\", item: {a: int}}}\n    writer: {csv: {path: \"part-${part.name}.csv\"}}"},
		"partitioner files": {path: "step: parts\n  partition: {by: {files: {glob: \"${params.input}\"}}}\n  chunk:\n    reader: {csv: {path: \"${part.path}\", item: {a: int}}}\n    writer: {csv: {path: \"part-${part.name}.csv\"}}"},
	}
	for name, why := range map[string]string{
		"processor dedupe": "it compares keys of items", "processor lookup": "it reads a table or a reader of its own", "processor validate": "its messages are of the file",
		"writer table": "it writes rows, and its errors are those of the database, which everything masks", "partitioner count": "it counts", "partitioner range": "its bounds are keys", "partitioner query": "it reads rows",
		"tasklet check": "its values are numbers of SQL", "tasklet compare": "it compares rows of tables", "tasklet sql": "it runs the statements of the file",
	} {
		list[name] = attempt{not: why}
	}
	return list
}

func evilPaths(dir string) []string {
	return []string{
		"/proc/self/environ", "//proc/self/environ", "/proc//self/./environ", "/proc/self/../self/environ", "/proc/thread-self/environ", "/proc/self/" + "root" + "/proc/self/environ",
		"/proc/self/cwd/in.txt", "/proc/self/fd/3", "/dev/fd/3", "/dev/stdin", "/sys/kernel/notes", "/proc/*/environ", "/pro[c]/self/environ",
		"../../../../../../../../../../proc/self/environ", "link", "folder/environ", "folder/../folder/environ", "./folder//environ", "hop", filepath.Dir(dir) + "/outside.txt", "../../outside.txt", "/etc/passwd",
	}
}

// Rules SE1, SE3, SE4. A new component needs an attempt.
func TestEveryComponentThatIsShippedKeepsPathsAndSecrets(t *testing.T) {
	t.Parallel()
	shipped, err := assembly.NewRegistry()
	require.NoError(t, err)
	tried := attempts()
	for _, c := range shipped.Components() {
		a, known := tried[string(c.Kind)+" "+c.Name]
		require.True(t, known, "%s %s: add an attempt to show a secret by it", c.Kind, c.Name)
		require.True(t, a.not != "" || a.path != "" || a.quote != "")
	}
	testdb.Each(t, func(t *testing.T, url string) { triedEach(t, url, tried) })
}

func leakyForms() (forms []string) {
	for _, secret := range []string{leakHook, leakViewer, leakDatabase} {
		for _, user := range []string{"", "me:", "you:", "them:"} {
			forms = append(forms, base64.StdEncoding.EncodeToString([]byte(user+secret)), base64.RawURLEncoding.EncodeToString([]byte(user+secret)))
		}
		forms = append(forms, secret, url.QueryEscape(secret), url.PathEscape(secret))
	}
	return forms
}

func innerOfForms() (parts []string) {
	for _, form := range leakyForms() {
		if form = strings.TrimRight(form, "="); len(form) > 12 {
			parts = append(parts, form[len(form)-10:len(form)-2])
		}
	}
	return parts
}

func triedEach(t *testing.T, dbURL string, tried map[string]attempt) {
	t.Parallel()
	text := strings.Join(leakyForms(), "\n") + "\n"
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body, err := json.Marshal(map[string]any{"data": map[string]any{"id": strings.TrimSpace(text)}, "said": text})
		require.NoError(t, err)
		_, _ = w.Write(body) //nolint:errcheck // of the test
	}))
	t.Cleanup(echo.Close)
	files := map[string]string{"jobs/in.txt": "a\n1\n", "outside.txt": "a\nOUTSIDE-7\n", "jobs/leaky.txt": text}
	var values, objects []string
	for _, form := range leakyForms() {
		values = append(values, "('"+form+"')")
		objects = append(objects, fmt.Sprintf(`{"a": %q}`, form))
	}
	files["jobs/leaky.json"] = "[" + strings.Join(objects, ", ") + "]"
	jobs := map[string]string{}
	for name, a := range tried {
		for what, step := range map[string]string{"path": a.path, "quote": a.quote} {
			if step == "" {
				continue
			}
			job := what + "_" + strings.ReplaceAll(name, " ", "_")
			jobs[job] = name
			files["jobs/"+job+".yaml"] = "job: " + job + "\nparameters: {input: {type: string, default: in.txt}}\nflow:\n- " + strings.ReplaceAll(step, "URL", echo.URL) + "\n"
		}
	}
	s := newScene(t, withPassword(t, dbURL), files)
	for name, target := range map[string]string{"link": "/proc/self/environ", "folder": "/proc/self", "hop": "folder/environ"} {
		require.NoError(t, os.Symlink(target, filepath.Join(s.dir, "jobs", name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "jobs/tool"), []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // a program
	s.env = []string{
		"SURFIN_API_OPERATOR_TOKENS_CI=" + serveToken, "SURFIN_API_VIEWER_TOKENS_WALL=" + leakViewer, "SURFIN_SECRET_HOOK=" + leakHook, "PGPASSWORD=" + leakDatabase,
		"SURFIN_API_RATE=100000", "SURFIN_LOG_LEVEL=debug",
	}
	db, _ := s.open()
	s.exec(db, "create table leaky (a varchar(200))", "insert into leaky values "+strings.Join(values, ", "))
	server := s.serve("--jobs", filepath.Join(s.dir, "jobs"))
	var seen strings.Builder
	var ran []string
	for job, component := range jobs {
		if strings.HasPrefix(job, "quote_") {
			status, answer := server.post("/v1/jobs/"+job+"/run", "", "{}")
			require.Equal(t, http.StatusOK, status, "%s: %v", component, answer)
			ran = append(ran, job)
			continue
		}
		evil := evilPaths(s.dir + "/jobs")
		if strings.Contains(job, "_writer_") {
			evil = append(evil, "in.yaml", job+".yaml", "new.SQL", "tool", "report.py", "Makefile")
		}
		for _, path := range evil {
			for _, act := range []string{"run", "plan"} {
				status, answer := server.post("/v1/jobs/"+job+"/"+act, "", fmt.Sprintf(`{"params": {"input": %q}}`, path))
				fmt.Fprintln(&seen, answer)
				if status >= 400 {
					require.Regexp(t, "outside the folders that clients may use|clients must not write or remove", fmt.Sprint(answer), "%s %s %s", act, component, path)
					continue
				}
				t.Errorf("%s of %s takes the path %s: %v", act, component, path, answer)
			}
		}
	}
	require.Eventually(t, func() bool {
		open := server.get(leakViewer, "/v1/executions?limit=200")
		return !strings.Contains(open, `"STARTED"`) && !strings.Contains(open, `"STARTING"`)
	}, 2*time.Minute, 100*time.Millisecond)
	for _, job := range ran {
		var list struct{ Executions []struct{ Execution int64 } }
		require.NoError(t, json.Unmarshal([]byte(server.get(leakViewer, "/v1/executions?job="+job)), &list))
		require.Len(t, list.Executions, 1, job)
		shown := ""
		for _, view := range []string{"", "/explain", "/skips"} {
			shown += server.get(leakViewer, fmt.Sprintf("/v1/executions/%d%s", list.Executions[0].Execution, view))
		}
		if !strings.Contains(shown, "***") {
			t.Errorf("%s quotes nothing: the attempt is of no use: %s", job, shown)
		}
		seen.WriteString(shown)
	}
	seen.WriteString(server.out.String())
	stored := everyRow(t, db)
	for _, line := range strings.Split(stored, "\n") {
		if !strings.HasPrefix(line, "leaky: ") {
			seen.WriteString(line + "\n")
		}
	}
	for _, secret := range append(innerOfForms(), "OUTSIDE-7", leakHook, leakViewer, leakDatabase) {
		if at := strings.Index(seen.String(), secret); at >= 0 {
			t.Errorf("shown or stored: %s in %s", secret, seen.String()[max(0, at-200):min(seen.Len(), at+100)])
		}
	}
}
