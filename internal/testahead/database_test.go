package testahead

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type database struct {
	tx.Database
	w *world
}

func (d database) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	d.w.note("begin")
	if err := d.w.meet(atBegin); err != nil {
		return nil, err
	}
	h, err := d.Database.Begin(ctx, attr)
	if err != nil {
		return nil, err
	}
	return handle{h, d.w}, nil
}

type handle struct {
	tx.Handle
	w *world
}

var errLost = errors.New("the database did not answer to COMMIT")

func (h handle) Commit() error {
	h.w.note("commit")
	var failure *injected
	if err := h.w.meet(atCommit); !errors.As(err, &failure) {
		return h.Handle.Commit()
	}
	switch failure.Fault.Kind {
	case lostBefore:
		return errors.Join(errLost, h.Handle.Rollback())
	case lostAfter:
		return errors.Join(errLost, h.Handle.Commit())
	default:
		return errors.Join(fmt.Errorf("%w: %w", tx.ErrRolledBack, exception.Skippable("commit", failure)), h.Handle.Rollback())
	}
}

func (h handle) Rollback() error {
	err := h.Handle.Rollback()
	if err == nil {
		h.w.note("rollback")
	}
	return err
}

type checkpoints struct {
	ports.CheckpointStore
	w *world
}

func (c checkpoints) Checkpoint(ctx context.Context, ref ports.StepRef, at ports.Checkpoint) error {
	if err := c.w.meet(atCheckpoint); err != nil {
		return err
	}
	return c.CheckpointStore.Checkpoint(ctx, ref, at)
}

func (c checkpoints) Reclaim(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	c.w.note("reclaim")
	if err := c.w.meet(atReclaim); err != nil {
		return ref, ports.Checkpoint{}, err
	}
	return c.CheckpointStore.Reclaim(ctx, ref)
}

type lease struct {
	model.Lease
	w *world
}

func (l lease) Err() error {
	if err := l.w.leaseErr(); err != nil {
		return err
	}
	return l.Lease.Err()
}

type cancellable struct {
	model.Step
	w *world
}

func (s cancellable) Execute(ctx context.Context, run *model.StepRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.w.cancel = cancel
	return s.Step.Execute(ctx, run)
}
