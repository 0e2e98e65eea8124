package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// leadership implements taskports.Leadership.
type leadership struct{ *store }

// Lead implements taskports.Leadership with one guarded UPDATE.
func (r leadership) Lead(ctx context.Context, holder string, lease time.Duration) (int64, bool, error) {
	// The clock of SQLite stands still for a millisecond, in which {now} has not passed yet.
	_, err := r.exec(ctx, "INSERT INTO {leader} (id, holder, epoch, lease_until) VALUES (1, '', 0, {later}) ON CONFLICT (id) DO NOTHING", -time.Second.Microseconds())
	if err != nil {
		return 0, false, fmt.Errorf("lead: %w", err)
	}
	var epochs []int64
	err = r.scan(ctx, &epochs, `UPDATE {leader} SET epoch = CASE WHEN holder = ? THEN epoch ELSE epoch + 1 END,
			since = CASE WHEN holder = ? THEN since ELSE {now} END, since_epoch = CASE WHEN holder = ? THEN since_epoch ELSE epoch + 1 END,
			holder = ?, lease_until = {later}
		WHERE id = 1 AND (holder = ? OR lease_until < {now}) RETURNING epoch`, holder, holder, holder, holder, lease.Microseconds(), holder)
	if err != nil {
		return 0, false, fmt.Errorf("lead: %w", err)
	}
	if len(epochs) == 0 {
		return 0, false, nil
	}
	return epochs[0], true, nil
}

// errNoTransaction means that Fence was called outside a transaction: it would hold nothing.
var errNoTransaction = errors.New("a leader can be fenced only in a transaction")

// Fence implements taskports.Leadership. SQLite has one writer, and its transaction is the fence.
func (r leadership) Fence(ctx context.Context, holder string, epoch int64) error {
	if _, inside := tx.From(ctx, r.db.Name()); !inside {
		return errNoTransaction
	}
	var found []int64
	if err := r.scan(ctx, &found, "SELECT epoch FROM {leader} WHERE id = 1 AND holder = ? AND epoch = ?"+lockOn(r.db.Dialect(), "SHARE"), holder, epoch); err != nil {
		return fmt.Errorf("leader of epoch %d: %w", epoch, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("leader of epoch %d: another process is the leader: %w", epoch, core.ErrLostOwner)
	}
	return nil
}

func (r leadership) Resign(ctx context.Context, holder string, epoch int64) error {
	_, err := r.exec(ctx, "UPDATE {leader} SET holder = '', lease_until = {later} WHERE id = 1 AND holder = ? AND epoch = ?", -time.Second.Microseconds(), holder, epoch)
	return wrapped(err, "leader of epoch %d: resign", epoch)
}

func (r leadership) Leader(ctx context.Context) (*taskports.Leader, error) {
	var rows []struct {
		Holder                 string
		Epoch                  int64
		LeaseUntil, Since, Now gormtx.Instant
		Deciders               *string
	}
	err := r.scan(ctx, &rows, `SELECT holder, epoch, lease_until, CASE WHEN since_epoch = epoch THEN since END AS since, {now} AS now,
		(SELECT deciders FROM {worker} WHERE name = holder) AS deciders FROM {leader} WHERE id = 1`)
	if err != nil {
		return nil, fmt.Errorf("read the leader: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	row := rows[0]
	l := &taskports.Leader{Holder: row.Holder, Epoch: row.Epoch, Since: row.Since.Time, Leading: row.Holder != "" && !row.LeaseUntil.Before(row.Now.Time)}
	if l.Leading {
		l.LeaseLeft = row.LeaseUntil.Sub(row.Now.Time).Seconds()
	}
	if row.Deciders != nil {
		if err := json.Unmarshal([]byte(*row.Deciders), &l.Deciders); err != nil {
			return nil, fmt.Errorf("read the deciders of the leader %s: %w", row.Holder, err)
		}
	}
	return l, nil
}
