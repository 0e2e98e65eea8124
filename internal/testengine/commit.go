package testengine

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Committing is a database with its COMMIT replaced by Commit.
type Committing struct {
	tx.Database
	Commit func(h tx.Handle) error
}

// Begin implements tx.Database.
func (d Committing) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	h, err := d.Database.Begin(ctx, attr)
	return &committingHandle{h, d.Commit}, err
}

type committingHandle struct {
	tx.Handle
	commit func(h tx.Handle) error
}

func (h *committingHandle) Commit() error { return h.commit(h.Handle) }

// ErrLine is why the answer to a COMMIT is lost.
var ErrLine = errors.New("the line is dead")

// LostBefore reports a COMMIT as failed that did not happen.
func LostBefore(h tx.Handle) error { return errors.Join(ErrLine, h.Rollback()) }

// LostAfter reports a COMMIT as failed that happened.
func LostAfter(h tx.Handle) error { return errors.Join(ErrLine, h.Commit()) }

// OnlyCommit does so only at the COMMIT of that number, from 1.
func OnlyCommit(number int, do func(h tx.Handle) error) func(h tx.Handle) error {
	count := 0
	return func(h tx.Handle) error {
		if count++; count == number {
			return do(h)
		}
		return h.Commit()
	}
}
