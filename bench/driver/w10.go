package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// Each request is made 40 times, in two turns: its p95 is the third slowest. There is a pause after each.
const (
	loadedTurns = 2
	loadedAsks  = 40 / loadedTurns
	loadedEvery = 30 * time.Millisecond
)

// w10 is the console and the API while a job runs and 100 tabs show it; each request also without the tabs.
func w10() Workload {
	var contestants []Contestant
	for _, database := range []string{onPostgres, onSQLite} {
		for _, r := range loadedRequests() {
			for _, tabs := range []int{0, watching} {
				r.database, r.tabs = database, tabs
				contestants = append(contestants, r)
			}
		}
	}
	return Workload{
		Name: "w10", Title: "the console and the API under 100 watchers of a job that runs: p95 of the time of a request", Part: true, Most: historyRows, Rounds: 3,
		Contestants: contestants, Prepare: prepareConsoles,
	}
}

// loaded is a request to the console of a database that has some open tabs.
type loaded struct {
	kind, database string
	tabs           int
	ask            func(ctx context.Context, c *console) (answer, error)
}

func loadedRequests() []loaded {
	get := func(kind string, path func(c *console) string) loaded {
		return loaded{kind: kind, ask: func(ctx context.Context, c *console) (answer, error) { return c.get(ctx, path(c), consoleToken, nil) }}
	}
	fixed := func(kind, path string) loaded { return get(kind, func(*console) string { return path }) }
	return []loaded{
		fixed("page now", "/"), fixed("page executions", "/executions"),
		get("page execution", func(c *console) string { return fmt.Sprintf("/executions/%d", c.Completed) }),
		fixed("API executions", "/v1/executions"),
		{kind: "API launch", ask: launchNight},
	}
}

// launchNight starts a new instance of a job, which the server then runs.
func launchNight(ctx context.Context, c *console) (answer, error) {
	night := time.Now().UnixMicro() * 10 // which does not fail
	body := strings.NewReader(fmt.Sprintf(`{"params": {"night": %d}}`, night))
	return c.request(ctx, http.MethodPost, "/v1/jobs/"+consoleJob(1)+"/run", body, consoleToken, map[string]string{"Content-Type": "application/json"})
}

func loadedName(kind, database string, tabs int) string {
	if tabs > 0 {
		kind += fmt.Sprintf(" under %d watchers", tabs)
	}
	return oursPrefix + " " + kind + ", " + database
}

func (l loaded) Name() string { return loadedName(l.kind, l.database, l.tabs) }

func (l loaded) Restarts() bool { return false }

func (l loaded) Command(Work) (*exec.Cmd, error) { return nil, errors.ErrUnsupported }

func (l loaded) Result([]byte) (Result, error) { return Result{}, errors.ErrUnsupported }

// Ask returns the p95 of the times. The first contestant of a round measures all requests, in turns without tabs
// and with them: the machine is busier in one minute than in another.
func (l loaded) Ask(ctx context.Context, b *bench) (r Result, err error) {
	if _, measured := b.loaded[l.Name()]; !measured {
		if err := b.measureLoaded(ctx, l.database); err != nil {
			return r, err
		}
	}
	r.Seconds, r.Requests = p95(b.loaded[l.Name()]), len(b.loaded[l.Name()])
	delete(b.loaded, l.Name())
	return r, nil
}

// measureLoaded measures the requests while a job runs and, in every other turn, tabs show it.
func (b *bench) measureLoaded(ctx context.Context, database string) (err error) {
	c := b.consoles[database]
	execution, end, err := startTicking(c.consoleHistory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	maps.DeleteFunc(b.loaded, func(name string, _ []float64) bool { return strings.HasSuffix(name, database) }) // of a round that failed
	for range loadedTurns {
		for _, tabs := range []int{0, watching} {
			all := openTabs(ctx, c, "/executions/"+execution, tabs)
			err := all.await(ctx, watchingWarm)
			if err == nil {
				err = b.measureTurn(ctx, c, all, tabs)
			}
			all.end()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// measureTurn makes all requests, each time in a new order, and once before without counting them.
func (b *bench) measureTurn(ctx context.Context, c *console, all *tabs, n int) error {
	requests := loadedRequests()
	for i := range loadedAsks + 1 {
		for _, at := range b.order.Perm(len(requests)) {
			a, err := requests[at].ask(ctx, c)
			if err != nil {
				return err
			}
			if i > 0 {
				name := loadedName(requests[at].kind, c.database, n)
				b.loaded[name] = append(b.loaded[name], a.seconds)
			}
			if err := all.await(ctx, loadedEvery); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadedTargets compare each request with the same one without watchers.
func loadedTargets() []target {
	var all []target
	for _, database := range []string{onSQLite, onPostgres} {
		for _, l := range loadedRequests() {
			under, without := loadedName(l.kind, database, watching), loadedName(l.kind, database, 0)
			all = append(all, target{
				text: strings.TrimPrefix(under, oursPrefix+" ") + ": times without them", workload: "w10",
				who: func(name string) bool { return name == under }, than: without, want: 2, show: times,
			})
		}
	}
	return all
}
