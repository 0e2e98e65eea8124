package migrator

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type script struct {
	text       string
	statements []sqlscript.Statement
}

// readScript leaves out BEGIN and COMMIT around all of it, and refuses them elsewhere: they would
// end the transaction that records the version.
func readScript(migration io.Reader, dialect tx.Dialect) (script, error) {
	text, err := io.ReadAll(migration)
	if err != nil {
		return script{}, fmt.Errorf("read the migration: %w", err)
	}
	list := sqlscript.Split(string(text), dialect)
	if n := len(list); n > 1 && begins(list[0]) && commits(list[n-1]) {
		list = list[1 : n-1]
	}
	for _, s := range list {
		if s.Control {
			return script{}, &lineError{line: s.Line, err: fmt.Errorf("%s: a migration and its version are one transaction: "+
				"remove it, or split the file into two migrations", s.Verb)}
		}
	}
	return script{string(text), list}, nil
}

func begins(s sqlscript.Statement) bool { return s.Verb == "BEGIN" || s.Verb == "START" }

func commits(s sqlscript.Statement) bool {
	return s.Control && (s.Verb == "COMMIT" || s.Verb == "END")
}

func (s script) at(stmt sqlscript.Statement, err error) error {
	line := stmt.Line
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Position > 0 {
		before := []rune(stmt.Text)[:min(int(e.Position)-1, len([]rune(stmt.Text)))]
		line = 1 + strings.Count(s.text[:stmt.Offset], "\n") + strings.Count(string(before), "\n")
	}
	return &lineError{line: line, statement: stmt.Text, err: err}
}

type lineError struct {
	file      string
	line      int
	statement string
	err       error
}

func (e *lineError) Error() string {
	text := fmt.Sprintf("line %d: %v", e.line, e.err)
	if e.file != "" {
		text = fmt.Sprintf("%s:%d: %v", e.file, e.line, e.err)
	}
	if e.statement != "" {
		text += ", in: " + clipped(strings.Join(strings.Fields(e.statement), " "))
	}
	return text
}

func (e *lineError) Unwrap() error { return e.err }

func towards(version int, err error) error { return &towardsError{max(version, 0), err} }

type towardsError struct {
	version int
	err     error
}

func (e *towardsError) Error() string {
	return fmt.Sprintf("on the way to version %d: %v", e.version, e.err)
}

func (e *towardsError) Unwrap() error { return e.err }

const savepoint = "surfin_migration"
