package table

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A trigger may make keys equal: the statement then fails, as it would change a row twice (21000), and the
// records are written one by one instead (rule D8). Only the failure shows this, so each part has a
// savepoint.
func (w *writer) writeRekeyed(ctx context.Context, conn tx.Conn, records, part [][]row.Value) error {
	if _, err := conn.ExecContext(ctx, "savepoint surfin_table"); err != nil {
		return err
	}
	leftOut := w.leftOut
	err := w.writePart(ctx, conn, records, part)
	const changedTwice = "21000"
	if dberr.SQLState(err) == changedTwice {
		if _, back := conn.ExecContext(ctx, "rollback to savepoint surfin_table"); back != nil {
			return errors.Join(err, back)
		}
		w.leftOut, err = leftOut, nil
		for i := 0; i < len(part) && err == nil; i++ {
			err = w.write(ctx, conn, records, part[i:i+1])
		}
	}
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "release savepoint surfin_table")
	return err
}
