package gormdb

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/mysqlform"
)

const formTries = 10

// run runs a statement that MySQL does not have (rule MY8). Outside of a transaction it has one of its own, and is repeated
// after a deadlock.
func (c *mysqlConn) run(ctx context.Context, f *mysqlform.Form, args []driver.NamedValue) (*formResult, error) {
	if c.within {
		return c.pieces(ctx, f, args)
	}
	for tries := 1; ; tries++ {
		t, err := c.mysqlDriver.BeginTx(ctx, driver.TxOptions{})
		if err != nil {
			return nil, err
		}
		r, err := c.pieces(ctx, f, args)
		if err == nil {
			err = t.Commit()
		} else {
			err = errors.Join(err, ignoreLost(t.Rollback()))
		}
		if err == nil {
			return r, nil
		}
		if !dberr.IsDeadlock(err) || tries == formTries || ctx.Err() != nil {
			return nil, withoutBadConn(err)
		}
	}
}

// A lost connection is the error of the statement before.
func ignoreLost(err error) error {
	if errors.Is(err, driver.ErrBadConn) || dberr.IsConnectionLost(err) {
		return nil
	}
	return err
}

func (c *mysqlConn) pieces(ctx context.Context, f *mysqlform.Form, args []driver.NamedValue) (*formResult, error) {
	r := &formResult{}
	keys := ""
	var found []driver.Value
	if f.Find.SQL != "" {
		var err error
		if found, err = c.locked(ctx, f, args); err != nil || len(found) == 0 {
			return r, err
		}
		keys = listOf(found)
	}
	result, err := c.write(ctx, f, keys, append(pick(f.Write, args), named(found)...))
	if err != nil || result == nil {
		return r, err
	}
	if r.affected, err = result.RowsAffected(); err != nil || r.affected == 0 {
		return r, err
	}
	if r.id, err = result.LastInsertId(); err != nil || f.Read.SQL == "" {
		return r, err
	}
	read, values := f.Read.SQL+keys, append(pick(f.Read, args), named(found)...)
	if f.Made {
		if f.Rows == 0 && r.affected > 1 {
			return nil, fmt.Errorf("RETURNING of an INSERT of %d rows of a query is not supported on MySQL", r.affected)
		}
		read += " BETWEEN ? AND ? ORDER BY id"
		values = append(values, named([]driver.Value{r.id, r.id + r.affected - 1})...)
	}
	rows, err := c.collect(ctx, read, values)
	if err == nil {
		r.columns, r.rows = rows.columns, rows.rows
	}
	return r, err
}

// locked returns the keys of the rows to update.
func (c *mysqlConn) locked(ctx context.Context, f *mysqlform.Form, args []driver.NamedValue) ([]driver.Value, error) {
	found, err := c.keys(ctx, f.Find.SQL, pick(f.Find, args))
	if err != nil || len(found) == 0 || f.Lock.SQL == "" {
		return found, err
	}
	return c.keys(ctx, f.LockKeys+listOf(found)+f.Lock.SQL, append(named(found), pick(f.Lock, args)...))
}

func (c *mysqlConn) keys(ctx context.Context, query string, args []driver.NamedValue) (found []driver.Value, err error) {
	r, err := c.collect(ctx, query, args)
	if err != nil {
		return nil, err
	}
	for _, row := range r.rows {
		found = append(found, keyValue(row[0]))
	}
	return found, nil
}

func listOf(keys []driver.Value) string { return "(?" + strings.Repeat(", ?", len(keys)-1) + ")" }

const duplicate = 1062

// write returns nil if every row was ignored. IGNORE would hide other errors: it follows only after a conflict, and must
// have hidden nothing else.
func (c *mysqlConn) write(ctx context.Context, f *mysqlform.Form, keys string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.mysqlDriver.ExecContext(ctx, f.Write.SQL+keys, args)
	if !f.Ignores || dberr.MySQLCode(err) != duplicate {
		return result, c.seen(tooLarge(err))
	}
	if f.Keyed {
		if ignored, kerr := c.ignored(ctx, f, args); kerr != nil || !ignored {
			return nil, cmp.Or(kerr, err)
		}
	}
	if f.Rows == 1 {
		return nil, nil //nolint:nilnil // no row
	}
	if result, err = c.mysqlDriver.ExecContext(ctx, strings.Replace(f.Write.SQL, "INSERT", "INSERT IGNORE", 1), args); err != nil {
		return nil, c.seen(err)
	}
	warnings, err := c.collect(ctx, "SHOW WARNINGS", nil)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings.rows {
		if code := fmt.Sprint(keyValue(w[1])); code != fmt.Sprint(duplicate) {
			return nil, fmt.Errorf("error %s: %v", code, keyValue(w[2]))
		}
	}
	return result, nil
}

// ignored reports whether the conflict is one of the statement's key.
func (c *mysqlConn) ignored(ctx context.Context, f *mysqlform.Form, args []driver.NamedValue) (bool, error) {
	if f.Exists.SQL != "" {
		found, err := c.keys(ctx, f.Exists.SQL, pick(f.Exists, args))
		return len(found) > 0, err
	}
	values := []driver.Value{f.Table}
	for _, column := range f.Columns {
		values = append(values, column)
	}
	found, err := c.keys(ctx, "SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = database() AND table_name = ? AND non_unique = 0 "+
		"AND column_name IN "+listOf(values[1:]), named(values))
	if err == nil && len(found) > 1 {
		err = fmt.Errorf("several rows with ON CONFLICT (...) DO NOTHING: table %s has other unique indexes (%v), with conflicts that MySQL would ignore: insert the rows one by one", f.Table, found)
	}
	return err == nil, err
}

// tooLarge: the driver would have database/sql prepare the statement, which is not split then.
func tooLarge(err error) error {
	if errors.Is(err, driver.ErrSkip) {
		return errors.New("a statement is larger than max_allowed_packet: raise it on the server")
	}
	return err
}

func (c *mysqlConn) collect(ctx context.Context, query string, args []driver.NamedValue) (*formResult, error) {
	rows, err := c.mysqlDriver.QueryContext(ctx, query, args)
	if err != nil {
		return nil, c.seen(tooLarge(err))
	}
	r := &formResult{columns: rows.Columns()}
	for err == nil {
		row := make([]driver.Value, len(r.columns))
		if err = rows.Next(row); err != nil {
			break
		}
		for i, v := range row {
			if b, is := v.([]byte); is {
				row[i] = append([]byte{}, b...)
			}
		}
		r.rows = append(r.rows, row)
	}
	if err == io.EOF { //nolint:errorlint // the driver's contract
		err = nil
	}
	return r, c.seen(errors.Join(err, rows.Close()))
}

// keyValue: bytes would be compared without the column's index.
func keyValue(v driver.Value) driver.Value {
	if b, is := v.([]byte); is {
		return string(b)
	}
	return v
}

func pick(t mysqlform.Text, args []driver.NamedValue) (list []driver.NamedValue) {
	for _, span := range t.Args {
		list = append(list, args[span.From:min(span.To, len(args))]...)
	}
	return list
}

func named(values []driver.Value) []driver.NamedValue {
	list := make([]driver.NamedValue, len(values))
	for i, v := range values {
		list[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return list
}

// formResult is the result of Exec, and the rows of Query.
type formResult struct {
	affected, id int64
	columns      []string
	rows         [][]driver.Value
}

func (r *formResult) LastInsertId() (int64, error) { return r.id, nil }

func (r *formResult) RowsAffected() (int64, error) { return r.affected, nil }

func (r *formResult) Columns() []string { return r.columns }

func (r *formResult) Close() error { return nil }

func (r *formResult) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}
