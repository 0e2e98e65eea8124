package gormdb

import (
	"context"
	"database/sql/driver"
)

// database/sql keeps a sessionStmt as long as the connection. If the connection's session is replaced, it
// is prepared again.
type sessionStmt struct {
	driver.Stmt
	trace   *trace
	session int
}

func (t *trace) statement(stmt driver.Stmt) driver.Stmt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sessionStmt{stmt, t, t.session}
}

func (s sessionStmt) isOutdated() bool {
	s.trace.mu.Lock()
	defer s.trace.mu.Unlock()
	return s.trace.session != s.session
}

func (s sessionStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	stmt, ok := s.Stmt.(driver.StmtExecContext)
	if !ok || s.isOutdated() {
		return nil, driver.ErrBadConn
	}
	return stmt.ExecContext(ctx, args)
}

func (s sessionStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	stmt, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok || s.isOutdated() {
		return nil, driver.ErrBadConn
	}
	return stmt.QueryContext(ctx, args)
}

func (s sessionStmt) Close() error {
	s.trace.mu.Lock()
	defer s.trace.mu.Unlock()
	if s.trace.session != s.session {
		return nil
	}
	return s.Stmt.Close()
}
