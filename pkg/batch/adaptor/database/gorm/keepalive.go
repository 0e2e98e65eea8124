package gormdb

import (
	"context"
	"fmt"
	"time"
)

// keepAlive sends an empty statement in intervals: work without SQL may take longer than the server lets a
// transaction wait. While rows of the transaction are open it cannot. A frozen process sends none, so that
// its session still ends (rule L7).
func (h *handle) keepAlive(limit time.Duration) {
	const perLimit = 3
	every := limit / perLimit
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = time.AfterFunc(every, func() {
		if h.c.ended.Load() || !h.ping(limit) {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.done {
			h.beat.Reset(every)
		}
	})
}

func (h *handle) ping(limit time.Duration) (isInTransaction bool) {
	err := h.c.conn.Raw(func(driverConn any) error {
		c, ok := driverConn.(interface {
			beat(limit time.Duration) (isInTransaction bool)
		})
		if !ok {
			return fmt.Errorf("the connection is a %T", driverConn)
		}
		isInTransaction = c.beat(limit)
		return nil
	})
	return err == nil && isInTransaction
}

// A session that is busy needs no ping; a problem of the session is the error of the next statement.
func (c *pgConn) beat(limit time.Duration) (isInTransaction bool) {
	session := c.Conn.Conn().PgConn()
	if isInTransaction = !session.IsClosed() && c.status() != idle; !isInTransaction || session.IsBusy() {
		return isInTransaction
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = session.Exec(ctx, "").Close() //nolint:errcheck // see above
	return true
}
