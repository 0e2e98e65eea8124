package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type listeners []any

func (r *run) listeners(ctx context.Context) (listeners, error) {
	if r.job.Listeners == nil {
		return nil, nil
	}
	var list []any
	err := r.callWithGrace(ctx, func() (err error) {
		list, err = r.job.Listeners(ctx, &core.View{Job: r.snapshot()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listeners: %w", err)
	}
	return list, nil
}

func (l listeners) before(ctx context.Context, r *run) error {
	for _, one := range l {
		b, ok := one.(core.BeforeJob)
		if !ok {
			continue
		}
		now := r.snapshot()
		if err := r.callWithGrace(ctx, func() error { return b.BeforeJob(ctx, now) }); err != nil {
			return fmt.Errorf("listener %T: before the job: %w", one, err)
		}
		if now.Context != nil {
			r.exec.Context = now.Context
		}
	}
	return nil
}

// after notifies in reverse order. An error fails the execution (rule C16).
func (l listeners) after(ctx context.Context, r *run, out core.Outcome, failure error) (core.Outcome, error) {
	if errors.Is(failure, core.ErrLostOwner) {
		return out, errors.Join(failure, l.close(ctx))
	}
	var errs []error
	for _, one := range slices.Backward(l) {
		a, ok := one.(core.AfterJob)
		if !ok {
			continue
		}
		now := r.snapshot()
		now.Status, now.ExitCode, now.Error = out.Status, out.ExitCode, out.Message
		if err := r.callWithGrace(ctx, func() error { return a.AfterJob(ctx, now) }); err != nil {
			errs = append(errs, fmt.Errorf("listener %T: after the job: %w", one, err))
			continue
		}
		if err := core.CheckExitCode(now.ExitCode); err != nil {
			errs = append(errs, fmt.Errorf("listener %T: after the job: %w", one, err))
			continue
		}
		if now.ExitCode != "" {
			out.ExitCode = now.ExitCode
		}
	}
	if len(l) > 0 {
		errs = append(errs, r.callWithGrace(ctx, func() error { return l.close(ctx) }))
	}
	err := errors.Join(errs...)
	switch {
	case err == nil:
		return out, failure
	case failure != nil:
		return out, errors.Join(failure, err)
	}
	return worsened(out, err), nil
}

// worsened is FAILED, unless it was worse. The message keeps the earlier
// errors.
func worsened(out core.Outcome, err error) core.Outcome {
	if worse := model.MaxStatus(out.Status, core.StatusFailed); worse != out.Status {
		out.Status, out.ExitCode = worse, core.ExitFailed
	}
	out.Message = joinText(out.Message, err.Error())
	return out
}

func (l listeners) close(ctx context.Context) error {
	var errs []error
	for _, one := range l {
		if c, ok := one.(item.Closer); ok {
			errs = append(errs, panics.GuardApart(func() error { return c.Close(ctx) }))
		}
	}
	return errors.Join(errs...)
}
