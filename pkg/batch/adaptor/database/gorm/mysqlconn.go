package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/mysqlform"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// mysqlDriver has the methods of a connection of go-sql-driver/mysql.
type mysqlDriver interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

var _ physical = (*mysqlConn)(nil)

type mysqlConn struct {
	mysqlDriver
	trace trace
	// whether it is in a transaction
	within bool
	// the end of the transaction, or nil (rule MY4)
	fatal error
	// A savepoint is set that shows whether the statement after it has ended the transaction.
	marked  bool
	reading int
}

func wrapMySQL(c driver.Conn) (physical, error) {
	own, ok := c.(mysqlDriver)
	if !ok {
		return nil, fmt.Errorf("the connection is a %T, not one of go-sql-driver/mysql", c)
	}
	m := &mysqlConn{mysqlDriver: own}
	m.trace = trace{renew: m.renew, keeps: keepsMySQL, distrusts: true, known: map[string]bool{}}
	return m, nil
}

func (c *mysqlConn) lend(_ context.Context, f func(driverConn any) error) error { return f(c) }

func (c *mysqlConn) opensBy(open func(ctx context.Context) (driver.Conn, error)) {
	c.trace.reopen = func(ctx context.Context) error {
		conn, err := open(ctx)
		if err != nil {
			return err
		}
		before := c.mysqlDriver
		c.mysqlDriver, c.within, c.reading = conn.(mysqlDriver), false, 0 //nolint:errcheck // open has asserted it
		_ = before.Close()                                                //nolint:errcheck // it was given up
		return nil
	}
}

// The driver has no reset of a session.
func (c *mysqlConn) renew() error { return errors.Join(driver.ErrBadConn, c.mysqlDriver.Close()) }

const mark = "surfin_mark"

// note refuses a commit (rule MY3), and statements after the end (rule MY4).
func (c *mysqlConn) note(ctx context.Context, query string) error {
	if c.within {
		if c.fatal != nil {
			return fmt.Errorf("the transaction must be rolled back, as an earlier statement failed: %w", c.fatal)
		}
		if err := c.prove(ctx); err != nil {
			return err
		}
		verb := firstWord(query)
		if commitsOnMySQL(verb, query) {
			return fmt.Errorf("%s would commit the transaction on MySQL: run it outside of one, as a step with `transaction: {propagation: NOT_SUPPORTED}`: %w", verb, tx.ErrNotOwner)
		}
		if query != "" && !keepsTransaction(verb) {
			if _, err := c.mysqlDriver.ExecContext(ctx, "SAVEPOINT "+mark, nil); err != nil {
				return err
			}
			c.marked = true
		}
	}
	c.trace.notice(ctx, query)
	return nil
}

const noSavepoint = 1305

// prove fails with ErrForeignEnd if the statement after the mark has ended the transaction (rule T8a).
func (c *mysqlConn) prove(ctx context.Context) error {
	if !c.marked {
		return nil
	}
	c.marked = false
	_, err := c.mysqlDriver.ExecContext(ctx, "RELEASE SAVEPOINT "+mark, nil)
	if dberr.MySQLCode(err) == noSavepoint {
		c.fatal = errEnded
		return errEnded
	}
	return err
}

func proveMySQL(conn *sql.Conn) (err error) {
	rerr := conn.Raw(func(driverConn any) error {
		c, ok := driverConn.(*mysqlConn)
		switch {
		case !ok:
			err = fmt.Errorf("the connection is a %T", driverConn)
		case c.fatal != nil:
			err = c.fatal
		default:
			err = c.prove(context.Background())
		}
		return nil
	})
	return errors.Join(rerr, err)
}

func (c *mysqlConn) seen(err error) error {
	if c.within && c.fatal == nil && dberr.EndsMySQL(err) {
		c.fatal = err
	}
	return err
}

func (c *mysqlConn) ResetSession(ctx context.Context) error {
	if err := c.trace.acquired(ctx); err != nil {
		return err
	}
	return c.mysqlDriver.ResetSession(ctx)
}

func (c *mysqlConn) IsValid() bool { return c.trace.released(c.mysqlDriver.IsValid) }

func (c *mysqlConn) Close() error {
	c.trace.mu.Lock()
	defer c.trace.mu.Unlock()
	c.trace.broken = true
	return c.mysqlDriver.Close()
}

func (c *mysqlConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.note(ctx, query); err != nil {
		return nil, err
	}
	query, order := plainVariables(query)
	args = inOrder(args, order)
	if f := mysqlform.Parse(query); f != nil {
		result, err := c.run(ctx, f, args)
		if err != nil {
			return nil, err
		}
		return result, nil
	}
	result, err := c.mysqlDriver.ExecContext(ctx, query, args)
	return result, c.seen(err)
}

func (c *mysqlConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.note(ctx, query); err != nil {
		return nil, err
	}
	query, order := plainVariables(query)
	args = inOrder(args, order)
	if f := mysqlform.Parse(query); f != nil {
		result, err := c.run(ctx, f, args)
		if err != nil {
			return nil, err
		}
		return result, nil
	}
	rows, err := c.mysqlDriver.QueryContext(ctx, query, args)
	if err != nil {
		return nil, c.seen(err)
	}
	own, ok := rows.(mysqlRows)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the rows are a %T, not of go-sql-driver/mysql", rows), rows.Close())
	}
	c.reading++
	return &seenRows{mysqlRows: own, conn: c}, nil
}

func (c *mysqlConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.note(ctx, query); err != nil {
		return nil, err
	}
	query, order := plainVariables(query)
	stmt, err := c.mysqlDriver.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.seen(err)
	}
	return c.trace.statement(mysqlStmt{stmt, c, order}), nil
}

// BeginTx notes the beginning.
func (c *mysqlConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	t, err := c.mysqlDriver.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.within, c.fatal, c.marked = true, nil, false
	return mysqlTx{t, c}, nil
}

type mysqlTx struct {
	driver.Tx
	conn *mysqlConn
}

func (t mysqlTx) Commit() error {
	c := t.conn
	proof := c.prove(context.Background())
	cause := c.fatal
	c.within = false
	switch {
	case errors.Is(proof, tx.ErrForeignEnd) || errors.Is(cause, tx.ErrForeignEnd):
		return errors.Join(errEnded, t.Tx.Rollback())
	case cause != nil:
		return errors.Join(fmt.Errorf("%w: a statement of the transaction had failed: %w", sql.ErrTxDone, cause), t.Tx.Rollback())
	case proof != nil:
		return errors.Join(proof, t.Tx.Rollback())
	}
	return t.Tx.Commit()
}

func (t mysqlTx) Rollback() error {
	c := t.conn
	proof := c.prove(context.Background())
	ended := errors.Is(proof, tx.ErrForeignEnd) || errors.Is(c.fatal, tx.ErrForeignEnd)
	c.within = false
	err := t.Tx.Rollback()
	if ended {
		return errors.Join(errEnded, err)
	}
	return err
}

// beat implements physical.
func (c *mysqlConn) beat(limit time.Duration) (isInTransaction bool) {
	if !c.within || !c.mysqlDriver.IsValid() {
		return false
	}
	if c.reading > 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = c.Ping(ctx) //nolint:errcheck // a problem of the session is the error of the next statement
	return true
}

// mysqlRows has the methods of rows of go-sql-driver/mysql.
type mysqlRows interface {
	driver.Rows
	driver.RowsNextResultSet
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

type seenRows struct {
	mysqlRows
	conn   *mysqlConn
	closed bool
}

func (r *seenRows) Next(dest []driver.Value) error { return r.conn.seen(r.mysqlRows.Next(dest)) }

func (r *seenRows) Close() error {
	if !r.closed {
		r.closed = true
		r.conn.reading--
	}
	return r.mysqlRows.Close()
}

type mysqlStmt struct {
	driver.Stmt
	conn  *mysqlConn
	order []int
}

func (s mysqlStmt) NumInput() int { return -1 }

func (s mysqlStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, inOrder(args, s.order)) //nolint:errcheck // the driver has it
	return result, s.conn.seen(err)
}

func (s mysqlStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, inOrder(args, s.order)) //nolint:errcheck // likewise
	return rows, s.conn.seen(err)
}

func firstWord(query string) (first string) {
	words(query, func(word string) bool {
		first = word
		return false
	})
	return first
}

// commitsOnMySQL reports the statements that commit before they run.
func commitsOnMySQL(verb, query string) bool {
	switch verb {
	case "ALTER", "RENAME", "TRUNCATE", "GRANT", "REVOKE", "LOCK", "UNLOCK", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK",
		"CACHE", "FLUSH", "INSTALL", "UNINSTALL", "STOP", "RESET", "CHANGE", "XA", "IMPORT", "CLONE":
		return true
	case "CREATE", "DROP":
		return !has(query, "TEMPORARY")
	case "SET":
		return has(query, "AUTOCOMMIT") || has(query, "PASSWORD")
	}
	return false
}

func has(query, wanted string) (found bool) {
	words(query, func(word string) bool {
		found = found || word == wanted
		return !found
	})
	return found
}

// keepsTransaction reports the statements that cannot end a transaction; a procedure can.
func keepsTransaction(verb string) bool {
	switch verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "SET", "DO", "USE",
		"SAVEPOINT", "RELEASE", "ROLLBACK", "CREATE", "DROP", "LOAD":
		return true
	}
	return false
}

// keepsMySQL reports that a text leaves the session unchanged.
func keepsMySQL(query string) bool {
	if strings.ContainsAny(query, `\@`) {
		return false
	}
	first, keeps := "", true
	words(query, func(word string) bool {
		if first == "" {
			first = word
			keeps = word != "SET" && (keepsVerb(word) || word == "REPLACE" || word == "DESCRIBE")
			return keeps
		}
		switch word {
		case "GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS":
			keeps = false
		default:
			keeps = keepsWord(word)
		}
		return keeps
	})
	return keeps
}

// plainVariables replaces ?2, which MySQL lacks, by a plain ?; order are then the arguments.
func plainVariables(query string) (plain string, order []int) {
	if at := strings.IndexByte(query, '?'); at < 0 || !hasNumbered(query[at:]) {
		return query, nil
	}
	var b strings.Builder
	most := 0
	for i := 0; i < len(query); {
		from := i
		switch c := query[i]; {
		case c == '\'':
			i = afterText(query, i+1)
		case c == '"' || c == '`':
			i = after(query, i+1, string(c))
		case strings.HasPrefix(query[i:], "-- ") || c == '#':
			i = after(query, i, "\n")
		case strings.HasPrefix(query[i:], "/*"):
			i = after(query, i+2, "*/")
		case c == '?':
			n := 0
			for i++; i < len(query) && query[i] >= '0' && query[i] <= '9'; i++ {
				n = 10*n + int(query[i]-'0')
			}
			if n == 0 {
				n = most + 1
			}
			most = max(most, n)
			order = append(order, n-1)
			b.WriteByte('?')
			continue
		default:
			i++
		}
		b.WriteString(query[from:i])
	}
	return b.String(), order
}

func hasNumbered(query string) bool {
	for {
		at := strings.IndexByte(query, '?')
		if at < 0 || at+1 == len(query) {
			return false
		}
		if query = query[at+1:]; query[0] >= '0' && query[0] <= '9' {
			return true
		}
	}
}

// afterText is after a literal, in which a backslash escapes.
func afterText(query string, i int) int {
	for ; i < len(query); i++ {
		switch query[i] {
		case '\\':
			i++
		case '\'':
			return i + 1
		}
	}
	return len(query)
}

func inOrder(args []driver.NamedValue, order []int) []driver.NamedValue {
	if order == nil {
		return args
	}
	list := make([]driver.NamedValue, 0, len(order))
	for i, n := range order {
		if n < len(args) { // the server reports the missing ones
			list = append(list, driver.NamedValue{Ordinal: i + 1, Value: args[n].Value})
		}
	}
	return list
}
