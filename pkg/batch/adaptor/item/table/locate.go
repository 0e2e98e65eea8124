package table

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// locateCopyError finds the record in the error's context, in any language:
// COPY table, line 3, column x.
func (p *plan) locateCopyError(err error, records int) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	for line := range strings.Lines(pg.Where) {
		rest, ok := strings.CutPrefix(line, "COPY "+p.relation+", ")
		if !ok {
			continue
		}
		from := strings.IndexAny(rest, "0123456789")
		if from < 0 {
			continue
		}
		digits := rest[from:]
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = digits[:end]
		}
		if n, bad := strconv.Atoi(digits); bad == nil && n > 0 && n <= records {
			return &item.RecordError{Index: n - 1, Err: err}
		}
	}
	return err
}

// LocateRecord halves the records until one
// is left. Earlier ones are written first, as it may be their duplicate.
func (w *writer) LocateRecord(ctx context.Context, schema *row.Schema, records [][]row.Value, failure error) (int, bool) {
	if !dberr.IsInvalidData(failure) && !dberr.IsConstraintViolation(failure) && !isOfValue(failure) {
		return 0, false
	}
	m := tx.NewManager(w.db)
	attempt := func(part [][]row.Value) error {
		return m.Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error { return w.WriteRecords(ctx, schema, part) })
	}
	defer func() { w.leftOut = 0 }()
	from, to := 0, len(records)
	for to-from > 1 {
		middle := (from + to) / 2
		switch err := attempt(records[from:middle]); {
		case err == nil:
			from = middle
		case isSame(err, failure):
			to = middle
		default:
			return 0, false
		}
	}
	return from, isSame(attempt(records[from:to]), failure)
}

func isSame(err, failure error) bool {
	var one, other *pgconn.PgError
	if errors.As(err, &one) && errors.As(failure, &other) {
		return one.Code == other.Code && one.ConstraintName == other.ConstraintName && one.Detail == other.Detail && one.Message == other.Message
	}
	if code := dberr.MySQLCode(failure); code != 0 {
		return dberr.MySQLCode(err) == code
	}
	code := dberr.SQLiteCode(failure)
	return err != nil && code != 0 && dberr.SQLiteCode(err) == code
}
