package river

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// stands for all subscribed queues
const worked = "deliveries"

// River has slots for each queue, but a worker has slots for all queues together: it must hold no delivery
// without a slot.
type driver struct {
	*riverpgxv5.Driver
	queues []string
	turn   atomic.Uint64
	clock  *clock
	log    *slog.Logger
}

func newDriver(pool *pgxpool.Pool, queues []string, c *clock, log *slog.Logger) *driver {
	return &driver{Driver: riverpgxv5.New(pool), queues: queues, clock: c, log: log}
}

func (d *driver) GetExecutor() riverdriver.Executor { return &executor{d.Driver.GetExecutor(), d} }

func (d *driver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	subscribed := make(map[string]bool, len(d.queues))
	for _, q := range d.queues {
		subscribed[q] = true
	}
	return &listener{d.Driver.GetListener(params), subscribed}
}

type executor struct {
	riverdriver.Executor
	driver *driver
}

// JobGetAvailable starts with another queue each time, so that none starves. An idle worker sends one
// statement, however many queues it has.
func (e *executor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) (*riverdriver.JobGetAvailableResult, error) {
	all := &riverdriver.JobGetAvailableResult{DecodeErrors: map[int64]error{}}
	queues, err := e.filled(ctx, params)
	if err != nil || len(queues) == 0 {
		return all, err
	}
	first := e.driver.turn.Add(1) % uint64(len(queues))
	for i := range queues {
		one := *params
		one.Queue = queues[(int(first)+i)%len(queues)] //nolint:gosec // below the number of queues
		one.MaxToLock = params.MaxToLock - len(all.Jobs)
		if one.MaxToLock <= 0 {
			break
		}
		got, err := e.Executor.JobGetAvailable(ctx, &one)
		switch {
		case err != nil && len(all.Jobs) == 0:
			return nil, err
		case err != nil: // those that are already locked must be worked on
			e.driver.log.WarnContext(ctx, "fetch deliveries", "queue", one.Queue, "error", err.Error())
			return all, nil
		case got != nil:
			all.Jobs = append(all.Jobs, got.Jobs...)
			maps.Copy(all.DecodeErrors, got.DecodeErrors)
		}
	}
	return all, nil
}

// filled are the queues with deliveries that are due, in their order.
func (e *executor) filled(ctx context.Context, params *riverdriver.JobGetAvailableParams) (queues []string, err error) {
	schema := cmp.Or(params.Schema, "public")
	err = e.QueryRow(ctx, `SELECT COALESCE(array_agg(q.name ORDER BY q.number), '{}') FROM unnest($1::text[]) WITH ORDINALITY AS q(name, number)
		WHERE EXISTS (SELECT FROM `+schema+`.river_job WHERE state = 'available' AND queue = q.name AND scheduled_at <= COALESCE($2::timestamptz, now()))`,
		e.driver.queues, params.Now).Scan(&queues)
	if err != nil {
		return nil, fmt.Errorf("find queues with deliveries: %w", err)
	}
	return queues, nil
}

func (e *executor) ahead(ctx context.Context) (time.Duration, error) {
	now, err := e.driver.clock.now(func() (now time.Time, err error) {
		err = e.QueryRow(ctx, clockQuery).Scan(&now)
		return now, err
	})
	return time.Until(now), err
}

func (e *executor) JobSchedule(ctx context.Context, params *riverdriver.JobScheduleParams) ([]*riverdriver.JobScheduleResult, error) {
	ahead, err := e.ahead(ctx)
	if err != nil {
		return nil, err
	}
	own := *params
	own.Now = later(params.Now, ahead)
	return e.Executor.JobSchedule(ctx, &own)
}

// The database's clock decides when repeated jobs come again.
func (e *executor) JobSetStateIfRunningMany(ctx context.Context, params *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	if !slices.ContainsFunc(params.ScheduledAt, func(at *time.Time) bool { return at != nil }) {
		return e.Executor.JobSetStateIfRunningMany(ctx, params)
	}
	ahead, err := e.ahead(ctx)
	if err != nil {
		return nil, err
	}
	own := *params
	own.ScheduledAt = make([]*time.Time, len(params.ScheduledAt))
	for i, at := range params.ScheduledAt {
		own.ScheduledAt[i] = later(at, ahead)
	}
	return e.Executor.JobSetStateIfRunningMany(ctx, &own)
}

func later(at *time.Time, by time.Duration) *time.Time {
	if at == nil {
		return nil
	}
	moved := at.Add(by)
	return &moved
}

type listener struct {
	riverdriver.Listener
	subscribed map[string]bool
}

const inserted = "river_insert"

func (l *listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	n, err := l.Listener.WaitForNotification(ctx)
	if err != nil || n.Topic != inserted {
		return n, err
	}
	var payload struct {
		Queue string `json:"queue"`
	}
	if err := json.Unmarshal([]byte(n.Payload), &payload); err == nil && l.subscribed[payload.Queue] {
		n.Payload = fmt.Sprintf(`{"queue": %q}`, worked)
	}
	return n, nil
}
