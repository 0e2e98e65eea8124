package gormdb

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/surfin-batch/surfin/internal/dberr"
)

// explainPostgres adds the end of the context to errors that it caused: the server's answer to a cancel
// request, or the loss of the connection.
func explainPostgres(ctx context.Context, err error) error {
	cause := ctx.Err()
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	if said := dberr.SQLState(err) != ""; said && !dberr.IsCanceled(err) && !dberr.IsConnectionLost(err) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

func explainSQLite(_ context.Context, err error) error {
	if dberr.SQLiteCode(err) == sqlite3.SQLITE_CONSTRAINT_COMMITHOOK {
		return lost(err)
	}
	return err
}
