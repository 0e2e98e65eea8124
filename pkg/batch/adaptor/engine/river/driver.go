package river

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// worked is the queue that River believes to work: all subscribed ones.
const worked = "deliveries"

// driver is River's driver with one queue that stands for several. River has slots for
// each queue, and a worker has them for all together: it must hold no delivery that it
// has no slot for.
type driver struct {
	*riverpgxv5.Driver
	queues []string
	turn   atomic.Uint64
	log    *slog.Logger
}

func newDriver(pool *pgxpool.Pool, queues []string, log *slog.Logger) *driver {
	return &driver{Driver: riverpgxv5.New(pool), queues: queues, log: log}
}

// GetExecutor implements riverdriver.Driver.
func (d *driver) GetExecutor() riverdriver.Executor { return &executor{d.Driver.GetExecutor(), d} }

// GetListener implements riverdriver.Driver.
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

// JobGetAvailable takes jobs from one queue after the other, and begins with another one
// each time, so that none starves.
func (e *executor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) (*riverdriver.JobGetAvailableResult, error) {
	all := &riverdriver.JobGetAvailableResult{DecodeErrors: map[int64]error{}}
	queues := e.driver.queues
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
		case err != nil: // those that are locked already are to be worked on
			e.driver.log.WarnContext(ctx, "fetch deliveries", "queue", one.Queue, "error", err.Error())
			return all, nil
		case got != nil:
			all.Jobs = append(all.Jobs, got.Jobs...)
			maps.Copy(all.DecodeErrors, got.DecodeErrors)
		}
	}
	return all, nil
}

// listener hears what is inserted into a subscribed queue as an insert into worked.
type listener struct {
	riverdriver.Listener
	subscribed map[string]bool
}

// inserted is the topic of River's notifications of inserts.
const inserted = "river_insert"

// WaitForNotification implements riverdriver.Listener.
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
