package enginetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Work is a table of work, with guarded transitions: waiting, taken, done or canceled.
type Work struct{ db tx.Database }

func (w *Work) create(ctx context.Context) error {
	return w.exec(ctx, `create table enginetest_work (
		kind varchar(40) not null, id bigint not null, epoch bigint not null, queue text not null, priority integer not null,
		due bigint not null, state text not null, taken_by text not null, takes integer not null, primary key (kind, id))`)
}

const columns = 6

// Add writes the waiting work of deliveries.
func (w *Work) Add(ctx context.Context, ds ...engine.Delivery) error {
	const most = 500 // SQLite allows few bind variables
	for len(ds) > most {
		if err := w.Add(ctx, ds[:most]...); err != nil {
			return err
		}
		ds = ds[most:]
	}
	var rows []string
	var args []any
	for _, d := range ds {
		d = d.Filled()
		marks := make([]string, columns)
		for i := range marks {
			marks[i] = w.db.Dialect().Placeholder(len(args) + i + 1)
		}
		rows = append(rows, "("+strings.Join(marks, ",")+",'waiting','',0)")
		due := d.NotBefore
		if due.IsZero() {
			due = time.Now()
		}
		args = append(args, string(d.Kind), d.ID, d.Epoch, d.Queue, d.Priority, due.UnixMicro())
	}
	return w.exec(ctx, "insert into enginetest_work (kind, id, epoch, queue, priority, due, state, taken_by, takes) values "+strings.Join(rows, ","), args...)
}

// Due finds waiting work, for engines that poll the tables.
func (w *Work) Due(ctx context.Context, queues []string, limit int) (ds []engine.Delivery, err error) {
	args := []any{time.Now().UnixMicro(), limit}
	var marks []string
	for _, q := range queues {
		args = append(args, q)
		marks = append(marks, w.db.Dialect().Placeholder(len(args)))
	}
	rows, err := tx.ConnOf(ctx, w.db).QueryContext(ctx, w.bind(`select kind, id, epoch, queue, priority from enginetest_work
		where state = 'waiting' and due <= {1} and queue in (`)+strings.Join(marks, ",")+w.bind(`) order by priority, due, id limit {2}`), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	for rows.Next() {
		var d engine.Delivery
		if err := rows.Scan(&d.Kind, &d.ID, &d.Epoch, &d.Queue, &d.Priority); err != nil {
			return nil, err
		}
		ds = append(ds, d)
	}
	return ds, rows.Err()
}

// Take takes the work of a delivery, if it waits in that epoch.
func (w *Work) Take(ctx context.Context, d engine.Delivery, by string) (bool, error) {
	return w.move(ctx, `update enginetest_work set state = 'taken', taken_by = {4}, takes = takes + 1
		where kind = {1} and id = {2} and epoch = {3} and state = 'waiting'`, d, by)
}

// End ends work that was taken in that epoch.
func (w *Work) End(ctx context.Context, d engine.Delivery) error {
	applied, err := w.move(ctx, `update enginetest_work set state = 'done' where kind = {1} and id = {2} and epoch = {3} and state = 'taken'`, d)
	if err == nil && !applied {
		err = fmt.Errorf("the work of %s is not taken in this epoch", d)
	}
	return err
}

func (w *Work) cancel(ctx context.Context, d engine.Delivery) (bool, error) {
	return w.move(ctx, `update enginetest_work set state = 'canceled' where kind = {1} and id = {2} and epoch = {3} and state = 'waiting'`, d)
}

func (w *Work) again(ctx context.Context, d engine.Delivery) (engine.Delivery, bool, error) {
	applied, err := w.move(ctx, `update enginetest_work set epoch = epoch + 1 where kind = {1} and id = {2} and epoch = {3} and state = 'waiting'`, d)
	d.Epoch++
	return d, applied, err
}

func (w *Work) count(ctx context.Context, where string) (n int, err error) {
	err = tx.ConnOf(ctx, w.db).QueryRowContext(ctx, "select count(*) from enginetest_work where "+where).Scan(&n) //nolint:gosec // of this package
	return n, err
}

func (w *Work) move(ctx context.Context, statement string, d engine.Delivery, more ...any) (bool, error) {
	result, err := tx.ConnOf(ctx, w.db).ExecContext(ctx, w.bind(statement), append([]any{string(d.Kind), d.ID, d.Epoch}, more...)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

func (w *Work) exec(ctx context.Context, statement string, args ...any) error {
	_, err := tx.ConnOf(ctx, w.db).ExecContext(ctx, statement, args...)
	return err
}

func (w *Work) bind(statement string) string {
	const most = 9
	for n := 1; n <= most; n++ {
		statement = strings.ReplaceAll(statement, fmt.Sprintf("{%d}", n), w.db.Dialect().Placeholder(n))
	}
	return statement
}
