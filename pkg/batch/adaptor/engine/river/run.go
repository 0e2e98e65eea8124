package river

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// for the listener, fetches, ends, and the leader's work
	connections = 5
	cooldown    = 20 * time.Millisecond
	restart     = time.Second
	// The tables of the work are the history.
	retention = time.Minute
	// River gives up a job that no process has ended. It does not limit the work: River only forgets the
	// job.
	unknown = 24 * time.Hour
)

// Run implements engine.Engine. It opens its own connections, and closes them at its end.
func (e *Engine) Run(ctx context.Context, stop <-chan struct{}, s engine.Subscription, h engine.Handler) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Slots > river.QueueNumWorkersMax {
		return fmt.Errorf("engine river: a subscription with %d slots: at most %d are allowed", s.Slots, river.QueueNumWorkersMax)
	}
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		err := e.serve(ctx, stop, s, h)
		switch {
		case errors.Is(err, core.ErrSchemaMissing):
			return err
		case err != nil && ctx.Err() == nil:
			e.config.Log.WarnContext(ctx, "engine river: it is already started", "error", err.Error())
		}
		timer := time.NewTimer(restart)
		select {
		case <-stop:
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (e *Engine) serve(ctx context.Context, stop <-chan struct{}, s engine.Subscription, h engine.Handler) error {
	if err := e.CheckSchema(ctx); err != nil {
		return err
	}
	pool, err := e.db.PgxPool(ctx, connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	names := make(map[string]string, len(s.Queues))
	queues := make([]string, len(s.Queues))
	for i, q := range s.Queues {
		queues[i] = queueOf(q)
		names[queues[i]] = q
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{handle: h, handlers: ctx, names: names, log: e.config.Log}); err != nil {
		return err
	}
	client, err := river.NewClient[pgx.Tx](newDriver(pool, queues, &e.clock, e.config.Log), e.clientConfig(s.Slots, workers))
	if err != nil {
		return err
	}
	// Handlers are waited for, and the end of their jobs is written, though ctx has ended.
	outlasting := context.WithoutCancel(ctx)
	if err := client.Start(outlasting); err != nil {
		return err
	}
	select {
	case <-stop:
	case <-ctx.Done():
	case <-client.Stopped():
		return errors.New("it stopped unexpectedly")
	}
	return client.Stop(outlasting)
}

func (e *Engine) clientConfig(slots int, workers *river.Workers) *river.Config {
	return &river.Config{
		Schema: e.config.Schema, Logger: quiet(e.config.Log), Workers: workers,
		Queues:        map[string]river.QueueConfig{worked: {MaxWorkers: slots}},
		FetchCooldown: min(cooldown, e.config.Poll), FetchPollInterval: e.config.Poll, PollOnly: e.config.PollOnly,
		MaxAttempts: 1, JobTimeout: unknown, RescueStuckJobsAfter: unknown + time.Hour,
		CompletedJobRetentionPeriod: retention, CancelledJobRetentionPeriod: retention, DiscardedJobRetentionPeriod: time.Hour,
	}
}

type worker struct {
	river.WorkerDefaults[delivery]
	handle engine.Handler
	// handlers is the context of Run. River's context ends when River wants to take the job away, which it
	// must not do.
	handlers context.Context //nolint:containedctx // it is of the call of Run that the worker is made by
	names    map[string]string
	log      *slog.Logger
}

func (w *worker) Work(_ context.Context, job *river.Job[delivery]) error {
	ctx := w.handlers
	d, err := deliveryFrom(job, w.names)
	if err != nil {
		w.log.ErrorContext(ctx, "engine river", "error", err.Error())
		return river.JobCancel(err)
	}
	answer, err := engine.Call(ctx, w.handle, d)
	if err != nil {
		w.log.ErrorContext(ctx, "engine river", "error", err.Error())
	}
	if after, retry := answer.Retry(); retry {
		return river.JobSnooze(after)
	}
	return nil
}
