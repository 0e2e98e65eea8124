//test:plain

package dberr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
)

// Rule C10a.
func TestACommitIsCertainlyRolledBackWhereTheServerSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		certain bool
	}{
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Severity: "FEHLER", Code: "23505"}, true},
		{&pgconn.PgError{Severity: "ERROR", Code: "40001"}, true},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40003"}, false},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "08006"}, false},
		{&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "40001"}, false},
		{&pgconn.PgError{SeverityUnlocalized: "PANIC", Code: "23505"}, false},
		{&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}, false},
		{pgx.ErrTxCommitRollback, true},
		{errors.New("the line is dead"), false},
	} {
		require.Equal(t, c.certain, dberr.IsRolledBack(fmt.Errorf("commit: %w", c.err)), "%#v", c.err)
	}
}
