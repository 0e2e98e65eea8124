package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// bench is the common state of all workloads while the driver runs.
type bench struct {
	options
	dir    string
	server *server
	order  *rand.Rand
	inputs map[int]Work     // by rows: Input and Sum
	built  map[string]error // by the type of a peer
	// consoles are the servers of w8 and w10 by their database, and closing ends their processes.
	consoles map[string]*console
	closing  []func() error
	loaded   map[string][]float64 // times of requests of w10 that no contestant has taken yet, by its name
}

func newBench(ctx context.Context, o options) (*bench, error) {
	dir, err := os.MkdirTemp(o.dir, "surfin-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil { // the contestants run in folders of their own
		return nil, err
	}
	b := &bench{
		options: o, dir: dir, inputs: map[int]Work{}, built: map[string]error{}, consoles: map[string]*console{}, loaded: map[string][]float64{},
		order: rand.New(rand.NewPCG(o.seed, 2)), //nolint:gosec // an order that can be had again
	}
	if b.server, err = startServer(ctx, o.postgres, o.serverSettings()...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

func (b *bench) close() error {
	var errs []error
	for _, end := range slices.Backward(b.closing) {
		errs = append(errs, end())
	}
	return errors.Join(append(errs, b.server.stop(), os.RemoveAll(b.dir))...)
}

func (b *bench) input(rows int) (path string, sum uint64, err error) {
	if w, ok := b.inputs[rows]; ok {
		return w.Input, w.Sum, nil
	}
	path = filepath.Join(b.dir, fmt.Sprintf("sales-%d.csv", rows))
	sum, err = writeSales(path, rows, b.seed)
	if err == nil {
		b.inputs[rows] = Work{Input: path, Sum: sum}
	}
	return path, sum, err
}

// compare runs a workload. Contestants that targets compare have some more
// rounds than the others.
func (b *bench) compare(ctx context.Context, of Workload) (*table, error) {
	w := Work{Workload: of.Name, Rows: b.rowsOf(of)}
	var err error
	if w.Input, w.Sum, err = b.input(w.Rows); err != nil {
		return nil, err
	}
	if of.Prepare != nil {
		if err := of.Prepare(ctx, b, &w); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	t := newTable(of, w.Rows, b.rounds)
	for i, c := range of.Contestants {
		if i > 0 && !b.only.MatchString(c.Name()) {
			continue
		}
		if p, ok := c.(Peer); ok {
			if !b.peers {
				continue
			}
			if err := b.build(ctx, p); err != nil {
				t.add(c, err)
				continue
			}
		}
		t.add(c, b.gate(ctx, of, c, w))
	}
	for round := range t.mostRounds() {
		if err := b.round(ctx, t, w, round); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// round runs the contestants that have that many rounds, in a new order.
func (b *bench) round(ctx context.Context, t *table, w Work, round int) error {
	t.shuffle(b.order)
	for _, l := range t.lines {
		if l.failed != nil || round >= len(l.runs) {
			continue
		}
		run, err := b.once(ctx, t.workload, l.contestant, w)
		if err != nil {
			l.failed = fmt.Errorf("round %d: %w", round+1, err)
			if l.place == 0 {
				return fmt.Errorf("the floor, %s: %w", l.contestant.Name(), l.failed)
			}
			continue
		}
		l.runs[round] = run
	}
	return context.Cause(ctx)
}

func (b *bench) rowsOf(of Workload) int {
	rows := b.size
	if of.Share != 0 {
		rows = max(int(float64(rows)*of.Share), minSize)
	}
	if of.Most != 0 {
		rows = min(rows, of.Most)
	}
	return rows
}

func (b *bench) build(ctx context.Context, p Peer) error {
	kind := fmt.Sprintf("%T", p)
	err, ok := b.built[kind]
	if !ok {
		if err = p.Build(ctx, b); err != nil {
			err = fmt.Errorf("build %s: %w", p.Name(), err)
		}
		b.built[kind] = err
	}
	return err
}

// gate checks a contestant before it is measured: its output after it was
// killed and run again.
func (b *bench) gate(ctx context.Context, of Workload, c Contestant, w Work) error {
	fmt.Fprintf(os.Stderr, "%s: %s\n", of.Name, c.Name())
	if !c.Restarts() {
		return nil
	}
	const tries = 5 // it may be done before it is killed
	for range tries {
		killed, err := b.restarted(ctx, of, c, w)
		if err != nil {
			return fmt.Errorf("killed and restarted: %w", err)
		}
		if killed {
			return nil
		}
	}
	return fmt.Errorf("it was done before it could be killed, %d times: take a larger -size", tries)
}

// once runs a contestant in a clean state, and checks its work.
func (b *bench) once(ctx context.Context, of Workload, c Contestant, w Work) (run, error) {
	w, err := b.clear(ctx, of, c, w)
	if err != nil {
		return run{}, err
	}
	r, err := b.measure(ctx, c, w)
	if err != nil {
		return run{}, err
	}
	return r, check(ctx, of, w, r)
}

func check(ctx context.Context, of Workload, w Work, r run) error {
	if of.Check == nil {
		return nil
	}
	return of.Check(ctx, w, r.Result)
}

// restarted kills a contestant in the middle, and runs it again.
func (b *bench) restarted(ctx context.Context, of Workload, c Contestant, w Work) (bool, error) {
	w, err := b.clear(ctx, of, c, w)
	if err != nil {
		return false, err
	}
	w.KillAt = int64(w.Rows / 2)
	_, err = b.measure(ctx, c, w)
	if err == nil {
		return false, nil
	}
	if !wasKilled(err) {
		return false, err
	}
	w.KillAt = 0
	r, err := b.measure(ctx, c, w)
	if err != nil {
		return true, err
	}
	return true, check(ctx, of, w, r)
}

// clear makes the state before a run.
func (b *bench) clear(ctx context.Context, of Workload, c Contestant, w Work) (Work, error) {
	w.Contestant = c.Name()
	w.Dir = filepath.Join(b.dir, "run")
	if err := errors.Join(os.RemoveAll(w.Dir), os.Mkdir(w.Dir, 0o700)); err != nil {
		return w, err
	}
	if w.URL != "" && !w.Keep {
		if err := b.server.fresh(ctx, of.Name); err != nil {
			return w, err
		}
		w.URL = b.server.urlOf(runDatabase)
	}
	if of.Clear != nil {
		if err := of.Clear(ctx, b, w); err != nil {
			return w, fmt.Errorf("clear: %w", err)
		}
	}
	return w, nil
}

// identifier makes a name for a database or a file from any text.
func identifier(text string) string {
	name := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return '_'
	}, text)
	if len(name) > 40 {
		name = name[:32] + hex.EncodeToString([]byte(name[len(name)-4:]))
	}
	return name
}
