package tx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Manager applies the propagation rules to one database.
type Manager struct{ db Database }

// NewManager returns the manager of db.
func NewManager(db Database) *Manager { return &Manager{db: db} }

// Database returns the manager's database.
func (m *Manager) Database() Database { return m.db }

// Do runs fn as attr requests (rules T1 to T4, T8). The context that fn gets carries the current
// transaction; everything fn does through it commits or rolls back together. fn's error, and its panic
// after a rollback, are returned unchanged; other errors are ErrNoTransaction, ErrTransaction,
// ErrSingleWriter, *RollbackOnlyError, *CommitError, ErrForeignEnd, the context's error if fn did not
// notice it, sql.ErrTxDone if ctx outlived its transaction, or the failure to begin.
//
// A transaction belongs to one goroutine at a time.
func (m *Manager) Do(ctx context.Context, attr Attr, fn func(ctx context.Context) error) error {
	current, _ := ctx.Value(key{m.db.Name()}).(*scope)
	if current.hasEnded() {
		return fmt.Errorf("database %s: the context belongs to a transaction that is over: %w", m.db.Name(), sql.ErrTxDone)
	}
	active := current != nil && !current.suspended
	if attr.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attr.Timeout)
		defer cancel()
	}
	switch attr.Propagation {
	case Required, "":
		if active {
			return m.join(ctx, current, attr, fn)
		}
		return m.begin(ctx, current, attr, fn)
	case RequiresNew:
		return m.begin(ctx, current, attr, fn)
	case Nested:
		if active {
			return m.nest(ctx, current, attr, fn)
		}
		return m.begin(ctx, current, attr, fn)
	case Supports:
		if active {
			return m.join(ctx, current, attr, fn)
		}
		return fn(ctx)
	case NotSupported:
		if active {
			return fn(m.with(ctx, current.suspend()))
		}
		return fn(ctx)
	case Mandatory:
		if !active {
			return fmt.Errorf("database %s: %w", m.db.Name(), ErrNoTransaction)
		}
		return m.join(ctx, current, attr, fn)
	case Never:
		if active {
			return fmt.Errorf("propagation NEVER on database %s: %w", m.db.Name(), ErrTransaction)
		}
		return fn(ctx)
	}
	return fmt.Errorf("propagation %q is unknown (allowed: %v)", attr.Propagation, Propagations())
}

func (m *Manager) with(ctx context.Context, s *scope) context.Context {
	return context.WithValue(ctx, key{m.db.Name()}, s)
}

// join runs fn in the existing transaction; its failure, or its panic, dooms the whole transaction.
func (m *Manager) join(ctx context.Context, s *scope, attr Attr, fn func(context.Context) error) (err error) {
	if err := m.fits(s, attr); err != nil {
		return err
	}
	done := false
	defer func() {
		switch {
		case !done:
			s.SetRollbackOnly(errors.New("joined work panicked"))
		case err != nil:
			s.SetRollbackOnly(err)
		}
	}()
	err = fn(ctx)
	if err == nil {
		err = ctx.Err() // a timeout that fn did not notice
	}
	done = true
	return err
}

// fits refuses work that cannot join the transaction. An isolation level that the database has is
// accepted without effect: the outermost owner chose it.
func (m *Manager) fits(s *scope, attr Attr) error {
	if s.readOnly && !attr.ReadOnly && attr.Propagation != Supports {
		return fmt.Errorf("work that may write cannot join the read-only transaction of database %s", m.db.Name())
	}
	return m.db.Check(attr)
}

func (m *Manager) begin(ctx context.Context, outer *scope, attr Attr, fn func(context.Context) error) error {
	if m.db.SingleWriter() && !attr.ReadOnly && outer.writing() {
		return fmt.Errorf("propagation %s on database %s: %w", attr.Propagation, m.db.Name(), ErrSingleWriter)
	}
	if err := m.db.Check(attr); err != nil {
		return err
	}
	h, err := m.db.Begin(ctx, attr)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	aborter := AborterOf(ctx)
	if !aborter.add(h) {
		return errors.Join(ErrAborted, h.Rollback())
	}
	s := &scope{
		database: m.db.Name(), handle: h, conn: h.Conn(), readOnly: attr.ReadOnly, singleWriter: m.db.SingleWriter(),
		outer: outer, savepoints: new(int), atEnd: &atEnd{},
	}
	returned := false
	defer func() {
		s.ended.Store(true)
		if !returned { // a panic is on its way
			aborter.release(h)
			_ = h.Rollback() //nolint:errcheck // the panic is what is reported
			s.atEnd.call(0, false)
		}
	}()
	err = m.end(ctx, s, aborter, fn(m.with(ctx, s)))
	returned = true
	s.ended.Store(true)
	s.atEnd.call(0, err == nil)
	return err
}

// end commits the transaction, or rolls it back if the work failed.
func (m *Manager) end(ctx context.Context, s *scope, aborter *Aborter, err error) error {
	h := s.handle
	if !aborter.release(h) {
		return errors.Join(ErrAborted, err)
	}
	if err == nil {
		err = s.doomed()
	}
	if err == nil {
		err = ctx.Err() // a timeout that fn did not notice must not commit
	}
	if err == nil {
		err = h.Commit()
		if err != nil && !errors.Is(err, ErrForeignEnd) { // otherwise there was nothing to commit
			err = &CommitError{Err: err}
		}
		return err
	}
	if rerr := h.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
		return errors.Join(err, fmt.Errorf("rollback: %w", rerr))
	}
	return err
}

// cleanUpTime bounds the undo statements, which run even if ctx has ended.
const cleanUpTime = 10 * time.Second

// nest runs fn after a savepoint, which the manager itself sets, releases and checks: not every driver
// layer reports a failed savepoint (rule T3).
func (m *Manager) nest(ctx context.Context, outer *scope, attr Attr, fn func(context.Context) error) error {
	if err := m.fits(outer, attr); err != nil {
		return err
	}
	*outer.savepoints++
	name := fmt.Sprintf("surfin_%d", *outer.savepoints)
	if _, err := outer.conn.ExecContext(ctx, "SAVEPOINT "+name); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	s := &scope{
		database: outer.database, handle: outer.handle, conn: outer.conn, readOnly: outer.readOnly, singleWriter: outer.singleWriter,
		outer: outer, savepoints: outer.savepoints, atEnd: outer.atEnd,
	}
	defer s.ended.Store(true)
	registered := s.atEnd.registered()
	returned := false
	defer func() {
		if !returned { // a panic is on its way
			if err := m.rollbackTo(ctx, s, name); err != nil {
				outer.SetRollbackOnly(err)
			}
			s.atEnd.call(registered, false)
		}
	}()
	err := fn(m.with(ctx, s))
	returned = true
	if err == nil {
		err = s.doomed()
	}
	if err == nil {
		err = ctx.Err() // a timeout that fn did not notice
	}
	if err == nil {
		if _, err := s.conn.ExecContext(ctx, "RELEASE SAVEPOINT "+name); err != nil {
			err = fmt.Errorf("release savepoint: %w", err)
			outer.SetRollbackOnly(err)
			return err
		}
		return nil
	}
	rerr := m.rollbackTo(ctx, s, name)
	s.atEnd.call(registered, false)
	if rerr != nil {
		outer.SetRollbackOnly(rerr)
		return errors.Join(err, rerr)
	}
	return err
}

func (m *Manager) rollbackTo(ctx context.Context, s *scope, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	for _, statement := range []string{"ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT "} {
		if _, err := s.conn.ExecContext(ctx, statement+name); err != nil {
			return fmt.Errorf("roll back to savepoint: %w", err)
		}
	}
	return nil
}
