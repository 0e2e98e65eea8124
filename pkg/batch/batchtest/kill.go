package batchtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type moment struct {
	Commit int  `json:"commit"` // from 1; 0 means never
	After  bool `json:"after"`
}

// commits counts this process's commits in all databases, and kills it at the given moment.
type commits struct {
	mu   sync.Mutex
	at   moment
	last string
	// for each commit the event before it
	list []string
}

func (c *commits) option() fx.Option {
	return fx.Options(
		fx.Decorate(func(p tx.Provider) tx.Provider { return countingProvider{p, c} }),
		batch.Observe(core.ObserverFunc(c.observe)),
	)
}

func (c *commits) observe(_ context.Context, e core.Event) {
	what := ""
	switch e := e.(type) {
	case core.JobStarted:
		what = "the job started"
	case core.JobEnded:
		what = "the job ended"
	case core.StepStarted:
		what = "step " + e.Step.Name + " started"
	case core.StepEnded:
		what = "step " + e.Step.Name + " ended"
	case core.ChunkCommitted:
		what = fmt.Sprintf("step %s read %d items", e.Step, e.Counters.Read)
	case core.ChunkRolledBack:
		what = fmt.Sprintf("step %s rolled back: %v", e.Step, e.Err)
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = what
}

func (c *commits) around(commit func() error) error {
	c.mu.Lock()
	c.list = append(c.list, c.last)
	due := c.at.Commit == len(c.list)
	c.mu.Unlock()
	if due && !c.at.After {
		killSelf()
	}
	err := commit()
	if due {
		killSelf()
	}
	return err
}

func (c *commits) made() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// killSelf ends this process with SIGKILL and does not return.
func killSelf() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic("batchtest: the process cannot kill itself: " + err.Error())
	}
	select {}
}

type countingProvider struct {
	tx.Provider
	commits *commits
}

func (p countingProvider) Database(name string) (tx.Database, error) {
	db, err := p.Provider.Database(name)
	if err != nil {
		return nil, err
	}
	return countingDatabase{db, p.commits}, nil
}

func (p countingProvider) Control(name string) (tx.Database, error) {
	inner, ok := p.Provider.(interface {
		Control(name string) (tx.Database, error)
	})
	if !ok {
		return p.Database(name)
	}
	db, err := inner.Control(name)
	if err != nil {
		return nil, err
	}
	return countingDatabase{db, p.commits}, nil
}

type countingDatabase struct {
	tx.Database
	commits *commits
}

func (d countingDatabase) Unwrap() tx.Database { return d.Database }

func (d countingDatabase) Conn() tx.Conn { return countingConn{d.Database.Conn(), d.commits} }

func (d countingDatabase) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	h, err := d.Database.Begin(ctx, attr)
	if err != nil || attr.ReadOnly || runlog.IsStoring(ctx) { // at any time
		return h, err
	}
	return countingHandle{h, d.commits}, nil
}

type countingHandle struct {
	tx.Handle
	commits *commits
}

func (h countingHandle) Commit() error { return h.commits.around(h.Handle.Commit) }

// Each statement outside a transaction that may write commits by itself.
type countingConn struct {
	tx.Conn
	commits *commits
}

func (c countingConn) ExecContext(ctx context.Context, query string, args ...any) (result sql.Result, err error) {
	if onlyReads(query) || runlog.IsStoring(ctx) {
		return c.Conn.ExecContext(ctx, query, args...)
	}
	err = c.commits.around(func() (err error) {
		result, err = c.Conn.ExecContext(ctx, query, args...)
		return err
	})
	return result, err
}

func onlyReads(query string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToLower(word) {
	case "select", "pragma", "show", "set", "explain":
		return true
	}
	return false
}
