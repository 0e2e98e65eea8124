package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"time"
)

// 100 tabs show an execution that runs. As many as the server admits have a stream; each of them asks for the
// page once a second, as a fragment, and with the tag of the last one.
const (
	watching     = 100
	streams      = 64
	watchingTime = 4 * time.Second
	watchingWarm = 1500 * time.Millisecond
)

// watchers are 100 tabs on a running execution. Counted ones count statements, for which the database server
// writes each into its log.
type watchers struct {
	database string
	counted  bool
}

func (w watchers) Name() string {
	if w.counted {
		return oursPrefix + " statements of 100 watchers"
	}
	return oursPrefix + " 100 watchers, " + w.database
}

func (w watchers) Restarts() bool { return false }

func (w watchers) Command(Work) (*exec.Cmd, error) { return nil, errors.ErrUnsupported }

func (w watchers) Result([]byte) (Result, error) { return Result{}, errors.ErrUnsupported }

// Ask returns the median time of a fragment, the part of a core that the server needs, and the number of
// statements in a second.
func (w watchers) Ask(ctx context.Context, b *bench) (r Result, err error) {
	c, log := b.consoles[w.database], (*planLog)(nil)
	if w.counted {
		of, counted, end, err := explainedConsole(b)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, of.Close(), end()) }()
		c, log = counted, of
	}
	execution, end, err := startTicking(c.consoleHistory)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, end()) }()
	all := openTabs(ctx, c, "/executions/"+execution, watching)
	defer all.end()
	if err := all.await(ctx, watchingWarm); err != nil {
		return r, err
	}
	if log != nil {
		if _, err := log.plans(); err != nil {
			return r, err
		}
	}
	before, _, _ := cpuOf(c.pid, false)
	begin := time.Now()
	all.measureFrom(begin)
	if err := all.await(ctx, watchingTime); err != nil {
		return r, err
	}
	after, _, _ := cpuOf(c.pid, false)
	seconds := time.Since(begin).Seconds()
	r.Cores = float64(after-before) / ticksOfSecond / seconds
	r.Seconds, r.Requests = all.times()
	if log != nil {
		plans, err := log.plans()
		if err != nil {
			return r, err
		}
		r.Rate = float64(len(plans)) / seconds
	}
	return r, nil
}

// tabs are open pages of one execution.
type tabs struct {
	end    context.CancelFunc
	failed chan error

	mu    sync.Mutex
	from  time.Time
	asked []float64
}

func openTabs(ctx context.Context, c *console, path string, n int) *tabs {
	ctx, end := context.WithCancel(ctx)
	w := &tabs{end: end, failed: make(chan error, watching+streams)}
	for n := range n {
		token := c.watchingToken(n)
		if n < streams {
			go func() { w.fail(ctx, c.listen(ctx, token, path)) }()
		}
		go func() { w.fail(ctx, w.ask(ctx, c, path, token, n)) }()
	}
	return w
}

func (w *tabs) fail(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		w.failed <- err
	}
}

func (w *tabs) ask(ctx context.Context, c *console, path, token string, n int) error {
	select { // tabs are not opened at one moment
	case <-ctx.Done():
		return nil
	case <-time.After(time.Duration(n) * time.Second / watching):
	}
	every := time.NewTicker(time.Second)
	defer every.Stop()
	headers := map[string]string{"HX-Request": "true"}
	for {
		begin := time.Now()
		a, err := c.get(ctx, path, token, headers)
		if err != nil {
			return err
		}
		if a.etag != "" {
			headers["If-None-Match"] = a.etag
		}
		w.note(begin, a.seconds)
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (w *tabs) note(begin time.Time, seconds float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.from.IsZero() && begin.After(w.from) {
		w.asked = append(w.asked, seconds)
	}
}

func (w *tabs) measureFrom(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = at
}

func (w *tabs) times() (median float64, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return spreadOf(w.asked).median, len(w.asked)
}

func (w *tabs) await(ctx context.Context, d time.Duration) error {
	select {
	case err := <-w.failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// listen reads the stream of changes until the end.
func (c *console) listen(ctx context.Context, token, path string) error {
	id := path[len("/executions/"):]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.address+"/v1/stream?topic=execution:"+id+",step:"+id+",progress:"+id, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the stream: %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func unzipped(resp *http.Response, body []byte) (string, error) {
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return string(body), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}
