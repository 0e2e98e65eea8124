package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch"
)

// purgedExecutions are the oldest ones, with those of failed instances, which a purge keeps.
const purgedExecutions = 10_000

// scaleHistory is a history of -size executions, compared with an empty one: lists, lookups, launches, and a purge
// while jobs are launched.
func scaleHistory(ctx context.Context, b *bench) (rows [][]string, err error) {
	const name = "scale-history"
	if err := errors.Join(b.server.template(ctx, name), b.server.template(ctx, shortHistory)); err != nil {
		return nil, err
	}
	w := Work{Workload: name, Rows: b.size, URL: b.server.urlOf(templateOf(name)), Dir: filepath.Join(b.dir, "run")}
	if err := os.MkdirAll(w.Dir, 0o700); err != nil {
		return nil, err
	}
	file, err := nightlyJob(b.dir)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := longHistory(ctx, w.URL, file, w.Rows); err != nil {
		return nil, err
	}
	m, err := b.meterOf(ctx, w.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	size, err := m.history(ctx)
	if err != nil {
		return nil, err
	}
	rows = [][]string{
		{fmt.Sprintf("%d executions", w.Rows), "value"},
		{"rows of the history", fmt.Sprintf("%.0f", size.rows)}, {"its size, with indexes", bytesText(size.bytes)},
		{"bytes of an execution of two steps, a skip and a failure in two", bytesText(size.bytes / float64(w.Rows))},
		{"made in", timeText(time.Since(begin).Seconds())},
	}
	fmt.Fprintln(os.Stderr, rows)
	for _, part := range []func(context.Context, Work) ([][]string, error){slowestLookups, launchTimes, purgeTimes} {
		more, err := part(ctx, w)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, more)
		rows = append(rows, more...)
	}
	return rows, nil
}

func slowestLookups(ctx context.Context, w Work) ([][]string, error) {
	slowest := map[bool]Result{}
	for _, l := range lookups() {
		r, err := l.run(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", l.name, timeText(r.Seconds))
		r.Found = l.name
		if list := isList(oursPrefix + " " + l.name); (list || isLookup(oursPrefix+" "+l.name)) && r.Seconds > slowest[list].Seconds {
			slowest[list] = r
		}
	}
	cells := func(what string, r Result) []string {
		return []string{"the slowest " + what + ", median: " + r.Found, timeText(r.Seconds)}
	}
	hand, err := pagesByHand(ctx, w)
	if err != nil {
		return nil, err
	}
	return [][]string{{pageByHand + ", median", timeText(hand.Seconds)}, cells("list", slowest[true]), cells("other lookup", slowest[false])}, nil
}

// launchRounds are enough for a median.
const launchRounds = 5

func launchTimes(ctx context.Context, w Work) ([][]string, error) {
	times := map[bool][]float64{}
	for range launchRounds {
		for _, short := range []bool{true, false} {
			r, err := launches(ctx, w, short)
			if err != nil {
				return nil, err
			}
			times[short] = append(times[short], r.Seconds)
		}
	}
	short, long := spreadOf(times[true]).median, spreadOf(times[false]).median
	return [][]string{
		{"a launch, median", timeText(long)}, {"a launch in an empty history, median", timeText(short)}, {"a launch: times one in an empty history", fmt.Sprintf("%.2f", long/short)},
	}, nil
}

// purgeTimes purges while another connection launches jobs.
func purgeTimes(ctx context.Context, w Work) (rows [][]string, err error) {
	app, err := openApp(ctx, w, w.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	before := time.Now().Add(-time.Duration(w.Rows/2-1-purgedExecutions/2) * time.Second)
	over, ended := make(chan struct{}), make(chan error, 1)
	var longest time.Duration
	launched := 0
	go func() {
		for {
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
			begin := time.Now()
			if err := launchOne(ctx, app, w, int(begin.UnixMicro())); err != nil {
				ended <- err
				return
			}
			longest, launched = max(longest, time.Since(begin)), launched+1
		}
	}()
	begin := time.Now()
	purged, failed := app.Service.Purge(ctx, operator.PurgeRequest{EndedBefore: before})
	took := time.Since(begin)
	close(over)
	if err := errors.Join(failed, <-ended); err != nil {
		return nil, err
	}
	return [][]string{
		{"executions purged", fmt.Sprint(purged.Executions)}, {"purged in a second", countOf(float64(purged.Executions) / took.Seconds())},
		{"jobs of one tasklet that ran meanwhile, one after the other", fmt.Sprint(launched)}, {"the longest of them", timeText(longest.Seconds())},
	}, nil
}

func launchOne(ctx context.Context, app *batch.App, w Work, night int) error {
	_, err := app.Run(ctx, batch.RunRequest{File: filepath.Join(w.Dir, "launched.yaml"), Params: nights(night)})
	return err
}
