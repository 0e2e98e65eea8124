package guide

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// trouble is the trouble with item 6. Errors of the data are in the data; others are injected.
type trouble struct {
	lines    map[int]string // of the input, by item
	present  []int64        // keys that are taken
	faults   []batchtest.Fault
	listener *failingListener
	commit   func() fx.Option
	timeout  string // of the step
}

func troubles() map[string]trouble {
	lost := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	plain := errors.New("something is wrong")
	all := map[string]trouble{
		"read: a line that does not parse":                    {lines: map[int]string{6: "six,1"}},
		"read: two lines that do not parse":                   {lines: map[int]string{6: "six,1", 8: "eight,1"}},
		"read: the connection is lost, twice":                 {faults: []batchtest.Fault{{Phase: core.PhaseRead, Calls: []int{6, 7}, Err: lost}}},
		"read: the connection is lost, for good":              {faults: []batchtest.Fault{{Phase: core.PhaseRead, Calls: calls(6, 20), Err: lost}}},
		"read: a panic":                                       {faults: []batchtest.Fault{{Phase: core.PhaseRead, Calls: []int{6}, Panic: "broken"}}},
		"process: a broken rule of `validate`":                {lines: map[int]string{6: "6,-3"}},
		"process: an expression that fails":                   {lines: map[int]string{6: "6,9223372036854775807"}},
		"write: a duplicate key":                              {present: []int64{6}},
		"write: two duplicate keys":                           {present: []int64{6, 8}},
		"write: a time-out of the network, once":              {faults: struck(core.PhaseWrite, 1, dialTimeout())},
		"write: the writer's error says skippable":            {faults: struck(core.PhaseWrite, 0, exception.Skippable("send", plain))},
		"listener: one that is called after a write":          {listener: &failingListener{at: "after_write"}},
		"listener: one that is called for a skip":             {present: []int64{6}, listener: &failingListener{at: "on_skip_write"}},
		"commit: a COMMIT gets no answer, and did not happen": {commit: func() fx.Option { return lyingCommit(false) }},
		"commit: a COMMIT gets no answer, and had happened":   {commit: func() fx.Option { return lyingCommit(true) }},
	}
	for _, phase := range []core.Phase{core.PhaseProcess, core.PhaseWrite} {
		for name, faults := range map[string][]batchtest.Fault{
			"the connection is lost, twice":    struck(phase, 2, lost),
			"the connection is lost, for good": struck(phase, 0, lost),
			"an error without a class":         struck(phase, 0, plain),
			"the error says that it is fatal":  struck(phase, 0, exception.Fatal("check", lost)),
			"a panic":                          {{Phase: phase, Match: sixth, Panic: "broken"}},
		} {
			all[string(phase)+": "+name] = trouble{faults: faults}
		}
		over := trouble{listener: &failingListener{at: "wait_" + string(phase)}, timeout: "3s"}
		if phase == core.PhaseProcess { // the writer notices by itself
			over.faults = struck(phase, 0, context.DeadlineExceeded)
		}
		all[string(phase)+": the step's time is over"] = over
	}
	// The seventh item is not reached before the split: its chunk fails for the sixth.
	all["write: a duplicate key, and two deadlocks in the split"] = trouble{present: []int64{6}, faults: deadlocked(2)}
	all["write: a duplicate key, and deadlocks in the split for good"] = trouble{present: []int64{6}, faults: deadlocked(0)}
	all["process: the processor's error says skippable"] = trouble{faults: struck(core.PhaseProcess, 0, exception.Skippable("check", plain))}
	all["process: the processor's error says retryable, twice"] = trouble{faults: struck(core.PhaseProcess, 2, exception.Retryable("ask", plain))}
	return all
}

// dialTimeout is a timeout as package net reports it: an error that claims to be context.DeadlineExceeded.
func dialTimeout() error {
	conn, err := net.DialTimeout("tcp", "127.0.0.1:9", time.Nanosecond)
	if err == nil {
		return errors.Join(errors.New("it should have timed out"), conn.Close())
	}
	return err
}

func sixth(item any) bool { o, ok := item.(order); return ok && o.ID == 6 }

// deadlocked is a deadlock of item 7, in transactions that do not hold item 6.
func deadlocked(times int) []batchtest.Fault {
	return []batchtest.Fault{{Phase: core.PhaseWrite, Match: func(item any) bool { o, ok := item.(order); return ok && o.ID == 7 }, Times: times, Err: &pgconn.PgError{Code: "40P01"}, After: true}}
}

// struck is a fault at item 6. In the write phase the writer has already written something to undo.
func struck(phase core.Phase, times int, err error) []batchtest.Fault {
	return []batchtest.Fault{{Phase: phase, Match: sixth, Times: times, Err: err, After: phase == core.PhaseWrite}}
}

func calls(from, to int) (list []int) {
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// failingListener fails with an error that would be retried and skipped if an item had it.
type failingListener struct{ at string }

func (l *failingListener) fail(at string, strikes bool) error {
	if l.at != at || !strikes {
		return nil
	}
	return &exception.BatchError{Op: "tell", Retryable: true, Skippable: true}
}

func (l *failingListener) AfterWrite(_ context.Context, items item.Items) error {
	return l.fail("after_write", hasSixth(items))
}

func hasSixth(items item.Items) bool {
	for i := range items.Len() {
		if sixth(items.At(i)) {
			return true
		}
	}
	return false
}

func (l *failingListener) BeforeProcess(ctx context.Context, item any) error {
	if l.at == "wait_process" && sixth(item) {
		<-ctx.Done()
	}
	return nil
}

func (l *failingListener) BeforeWrite(ctx context.Context, items item.Items) error {
	if l.at == "wait_write" && hasSixth(items) {
		<-ctx.Done()
	}
	return nil
}

func (l *failingListener) OnSkipWrite(_ context.Context, item any, _ error) error {
	return l.fail("on_skip_write", sixth(item))
}

// lyingCommit makes the second COMMIT of the data's database fail, after it happened or instead of it, like a
// connection that breaks in the middle of it.
func lyingCommit(happened bool) fx.Option {
	return fx.Decorate(func(p tx.Provider) tx.Provider { return &liar{Provider: p, happened: happened} })
}

type liar struct {
	tx.Provider
	happened bool
	commits  int
}

func (l *liar) Database(name string) (tx.Database, error) {
	db, err := l.Provider.Database(name)
	return lyingDatabase{db, l}, err
}

// Control passes the pool of the repository through: its commits are honest.
func (l *liar) Control(name string) (tx.Database, error) {
	inner, ok := l.Provider.(interface {
		Control(name string) (tx.Database, error)
	})
	if !ok {
		return nil, errors.New("the provider has no pool for control")
	}
	return inner.Control(name)
}

type lyingDatabase struct {
	tx.Database
	liar *liar
}

func (d lyingDatabase) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	h, err := d.Database.Begin(ctx, attr)
	return lyingHandle{h, d.liar}, err
}

type lyingHandle struct {
	tx.Handle
	liar *liar
}

var errGone = errors.New("the connection is gone")

func (h lyingHandle) Commit() error {
	if h.liar.commits++; h.liar.commits != 2 {
		return h.Handle.Commit()
	}
	if h.liar.happened {
		return errors.Join(h.Handle.Commit(), errGone)
	}
	return errors.Join(h.Handle.Rollback(), errGone)
}
