package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The databases of w8, as its contestants name them.
const (
	onSQLite   = "SQLite"
	onPostgres = "PostgreSQL"
)

// asks is how often a page is asked in a round, after some that are not measured; a slow one less often.
const (
	asks     = 20
	fewAsks  = 3
	asksTime = time.Second
)

// floorOfPages has no statement.
const floorOfPages = "the API's description"

// w8 is the console over a history of a year: each kind of page, on both databases.
func w8() Workload {
	contestants := []Contestant{page{kind: floorOfPages, database: onPostgres, of: func(*console) string { return "/openapi.json" }}}
	for _, database := range []string{onPostgres, onSQLite} {
		for _, p := range consolePages() {
			p.database = database
			contestants = append(contestants, p)
		}
		contestants = append(contestants, firstVisit{database}, watchers{database: database})
	}
	contestants = append(contestants, watchers{database: onPostgres, counted: true}, planned{})
	return Workload{
		Name: "w8", Title: "the console over a history with an execution for each row: p95 of the time of a page", Part: true, Most: historyRows, Rounds: 3,
		Contestants: contestants, Prepare: prepareConsoles,
	}
}

// consoleTemplate is the database of the history, which w8 and w10 share.
const consoleTemplate = "console"

func prepareConsoles(ctx context.Context, b *bench, w *Work) error {
	if len(b.consoles) > 0 { // of the workload before
		return nil
	}
	jobs := filepath.Join(b.dir, "jobs")
	if err := errors.Join(consoleFiles(jobs), b.server.template(ctx, consoleTemplate)); err != nil {
		return err
	}
	type filled struct {
		history *consoleHistory
		err     error
	}
	fill := func(url string) <-chan filled {
		done := make(chan filled, 1)
		go func() {
			h, err := fillConsole(ctx, url, jobs, w.Rows)
			done <- filled{h, err}
		}()
		return done
	}
	urls := map[string]string{onPostgres: b.server.urlOf(templateOf(consoleTemplate)), onSQLite: "sqlite:" + filepath.Join(b.dir, "console.db")}
	filling := map[string]<-chan filled{}
	for database, url := range urls {
		filling[database] = fill(url)
	}
	var errs []error
	for database, done := range filling {
		f := <-done
		if f.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", database, f.err))
			continue
		}
		c, end, err := startConsole(f.history, urls[database])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.database = database
		b.consoles[database] = c
		b.closing = append(b.closing, end)
	}
	return errors.Join(errs...)
}

// page is a kind of page on a database.
type page struct {
	kind, database string
	of             func(c *console) string
	// all also asks for the pages after this one: each of them counts.
	all bool
}

func (p page) Name() string {
	if p.kind == floorOfPages {
		return p.kind
	}
	return oursPrefix + " " + p.kind + ", " + p.database
}

func (p page) Restarts() bool { return false }

func (p page) Command(Work) (*exec.Cmd, error) { return nil, errors.ErrUnsupported }

func (p page) Result([]byte) (Result, error) { return Result{}, errors.ErrUnsupported }

// Ask returns the p95 of the times, and the bytes of the largest answer.
func (p page) Ask(ctx context.Context, b *bench) (r Result, err error) {
	c := b.consoles[p.database]
	paths, err := p.paths(ctx, c)
	if err != nil {
		return r, err
	}
	var times []float64
	for first := time.Now(); len(times) < asks && (len(times) < fewAsks || time.Since(first) < asksTime); {
		a, err := c.get(ctx, paths[len(times)%len(paths)], consoleToken, nil)
		if err != nil {
			return r, err
		}
		times, r.Bytes = append(times, a.seconds), max(r.Bytes, a.bytes)
	}
	r.Seconds, r.Requests = p95(times), len(paths)
	return r, nil
}

// paths are the page, which is asked once, and with all those after it.
func (p page) paths(ctx context.Context, c *console) ([]string, error) {
	paths := []string{p.of(c)}
	for len(paths) < asks {
		a, err := c.get(ctx, paths[len(paths)-1], consoleToken, nil)
		if err != nil || !p.all {
			return paths, err
		}
		next := nextLink.FindStringSubmatch(a.text)
		if next == nil {
			break
		}
		paths = append(paths, html.UnescapeString(next[1]))
	}
	return paths, nil
}

var nextLink = regexp.MustCompile(`href="([^"]+)" rel="next"`)

func p95(times []float64) float64 {
	slices.Sort(times)
	return times[(len(times)*95+99)/100-1]
}

// consolePages are the kinds of pages: each route, and those with many rows.
func consolePages() []page {
	fixed := func(kind, path string) page {
		return page{kind: "page " + kind, of: func(*console) string { return path }}
	}
	of := func(kind, form string, id func(c *console) int64) page {
		return page{kind: kind, of: func(c *console) string { return fmt.Sprintf(form, id(c)) }}
	}
	failed := func(c *console) int64 { return int64(c.Failed) }
	pages := []page{
		fixed("now", "/"), fixed("jobs", "/jobs"), fixed("job", "/jobs/nightly-000"), fixed("executions", "/executions"),
		of("page executions in the middle", "/executions?before=%d", failed), fixed("executions that failed", "/executions?statuses=FAILED"),
		fixed("executions by text", "/executions?text=ledger"), of("page executions by parameter", "/executions?param=night:%d", func(c *console) int64 { return int64(c.Failed-1) / consoleJobs }),
		of("page execution, completed", "/executions/%d", func(c *console) int64 { return int64(c.Completed) }), of("page execution, failed", "/executions/%d", failed),
		of("page timeline", "/executions/%d/timeline", failed), of("page throughput", "/executions/%d/throughput", failed),
		of("page definition", "/executions/%d/definition", failed), of("page results", "/executions/%d/results", failed), of("page audit of an execution", "/executions/%d/audit", failed),
		of("page tasks of an execution", "/executions/%d/tasks", failed), of("page compare", "/executions/%d/compare", failed),
		of("page execution with 100,000 skips", "/executions/%d", func(c *console) int64 { return int64(c.Skips) }),
		of("page skips, 100,000", "/executions/%d/skips", func(c *console) int64 { return int64(c.Skips) }), of("page skip", "/skips/%d", func(c *console) int64 { return c.Skip }),
		of("page log, 1,000,000 lines", "/executions/%d/log", func(c *console) int64 { return int64(c.Log) }),
		of("page log by text", "/executions/%d/log?text=publish", func(c *console) int64 { return int64(c.Log) }),
		fixed("schedules", "/schedules"), fixed("workers", "/workers"), fixed("tasks", "/tasks"), fixed("groups", "/groups"), fixed("events", "/events"),
		fixed("audit", "/audit"), fixed("settings", "/settings"), fixed("find", "/find?q=nightly-1"),
		fixed("form to run", "/jobs/nightly-000/run"), of("page form to run like another", "/jobs/nightly-000/run?like=%d", failed), fixed("form to back-fill", "/jobs/nightly-000/backfill?param=night&from=1&to=100"),
		of("page form to restart, with its plan", "/executions/%d/restart", failed), of("page form to abandon", "/executions/%d/abandon", failed),
		of("page form to redrive some of 100,000 skips", "/executions/%d/redrive", func(c *console) int64 { return int64(c.Skips) }),
		fixed("form to register", "/jobs/nightly-000/register"),
		fixed("form to submit a task", "/tasks/submit"), fixed("form to recover", "/recover"),
	}
	for _, parts := range []struct {
		kind string
		id   func(c *console) int64
	}{{"with 1,000 parts", func(c *console) int64 { return int64(c.Parts) }}, {"with 10,000 parts", func(c *console) int64 { return int64(c.ManyParts) }}} {
		for _, tab := range []string{"", "/parts", "/timeline", "/throughput"} {
			pages = append(pages, of("execution "+parts.kind+strings.Replace(tab, "/", ", ", 1), "/executions/%d"+tab, parts.id))
		}
	}
	for _, by := range []string{"text=nosuch", "param=night:999999999", "actor=nobody", "worker=nowhere"} {
		field, _, _ := strings.Cut(by, "=")
		p := fixed("", "/executions?"+by)
		p.kind, p.all = "search without a hit by "+field, true
		pages = append(pages, p)
	}
	bulk := fixed("", "/bulk?act=restart&job=nightly-001&statuses=FAILED")
	bulk.kind = "dry run of 100 restarts"
	return append(pages, bulk, of("explain of 1,000 parts", "/v1/executions/%d/explain", func(c *console) int64 { return int64(c.Parts) }))
}

type answer struct {
	status, bytes int
	text, etag    string
	seconds       float64 // until all of it was there
}

// get asks the server, and returns the answer when all of it is there.
func (c *console) get(ctx context.Context, path, token string, headers map[string]string) (answer, error) {
	return c.request(ctx, http.MethodGet, path, nil, token, headers)
}

func (c *console) request(ctx context.Context, method, path string, sent io.Reader, token string, headers map[string]string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.address+path, sent)
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept-Encoding", "gzip")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	begin := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	a = answer{seconds: time.Since(begin).Seconds(), status: resp.StatusCode, bytes: len(body), etag: resp.Header.Get("ETag")}
	if a.text, err = unzipped(resp, body); err != nil {
		return a, err
	}
	if a.status != http.StatusOK && a.status != http.StatusNotModified {
		at := strings.Index(a.text, "<h1")
		err = fmt.Errorf("%s %s: %s: %.600s", method, path, resp.Status, a.text[max(at, 0):])
	}
	return a, err
}

// firstVisit is the first page in a browser that knows nothing, with the files that it names.
type firstVisit struct{ database string }

func (v firstVisit) Name() string { return oursPrefix + " first visit, " + v.database }

func (v firstVisit) Restarts() bool { return false }

func (v firstVisit) Command(Work) (*exec.Cmd, error) { return nil, errors.ErrUnsupported }

func (v firstVisit) Result([]byte) (Result, error) { return Result{}, errors.ErrUnsupported }

var staticLink = regexp.MustCompile(`(?:href|src)="([^"#]*/static/[^"#]+)[#"]`)

func (v firstVisit) Ask(ctx context.Context, b *bench) (r Result, err error) {
	c := b.consoles[v.database]
	begin := time.Now()
	page, err := c.get(ctx, "/", consoleToken, nil)
	if err != nil {
		return r, err
	}
	r.Bytes, r.Requests = page.bytes, 1
	known := map[string]bool{}
	for _, found := range staticLink.FindAllStringSubmatch(page.text, -1) {
		path, err := url.PathUnescape(html.UnescapeString(found[1]))
		if err != nil {
			return r, err
		}
		if known[path] {
			continue
		}
		known[path] = true
		file, err := c.get(ctx, path, consoleToken, nil)
		if err != nil {
			return r, err
		}
		r.Bytes, r.Requests = r.Bytes+file.bytes, r.Requests+1
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

// consoleTargets are the targets of w8: times on both databases, sizes, and statements.
func consoleTargets() []target {
	var all []target
	for _, database := range []string{onSQLite, onPostgres} {
		on := func(begins ...string) func(string) bool {
			return func(name string) bool {
				return strings.HasSuffix(name, ", "+database) && slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(name, oursPrefix+" "+b) })
			}
		}
		slowest := func(text string, want float64, begins ...string) target {
			return target{text: text + ", " + database, workload: "w8", who: on(begins...), want: want, show: timeText}
		}
		all = append(all,
			slowest("the slowest page", 0.03, "page "),
			slowest("the slowest page of an execution with 1,000 parts", 0.06, "execution with 1,000 parts"),
			slowest("the slowest page of an execution with 10,000 parts", 0.25, "execution with 10,000 parts"),
			slowest("the slowest search without a hit", 0.15, "search "),
			slowest("explain of 1,000 parts", 0.03, "explain "),
			slowest("a bulk's dry run of 100 restarts", 0.5, "dry run "),
			target{text: "100 watchers: of a core, " + database, workload: "w8", who: on("100 watchers"), of: func(r run) float64 { return r.Cores }, want: 0.15, show: percentText},
		)
	}
	pages := func(name string) bool {
		return strings.HasSuffix(name, onPostgres) && !strings.Contains(name, "first visit") && !strings.Contains(name, "watchers")
	}
	visit := named("first visit, " + onPostgres)
	return append(all,
		target{text: "bytes of a first visit", workload: "w8", who: visit, of: func(r run) float64 { return float64(r.Bytes) }, want: 80 << 10, show: kilobytes},
		target{text: "requests of a first visit", workload: "w8", who: visit, of: func(r run) float64 { return float64(r.Requests) }, want: 8, show: countText},
		target{text: "bytes of the largest page", workload: "w8", who: pages, of: func(r run) float64 { return float64(r.Bytes) }, want: 40 << 10, show: kilobytes},
		target{text: "100 watchers: statements in a second", workload: "w8", who: named("statements of 100 watchers"), of: func(r run) float64 { return r.Rate }, want: 5, show: rateText},
		target{text: "rows that a statement of a page reads", workload: "w8", who: named("rows that a statement of a page reads"), of: func(r run) float64 { return float64(r.Rows) }, want: mostRead, show: countText},
	)
}

func kilobytes(v float64) string { return fmt.Sprintf("%.1f KB", v/(1<<10)) }

func countText(v float64) string { return fmt.Sprintf("%.0f", v) }

func rateText(v float64) string { return fmt.Sprintf("%.1f", v) }

func percentText(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
