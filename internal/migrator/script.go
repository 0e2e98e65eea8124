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

// script is the text of a migration, and its statements.
type script struct {
	text       string
	statements []sqlscript.Statement
}

// readScript reads a migration. BEGIN and COMMIT around all of it are left out: it is a transaction anyway.
// Elsewhere they would end the one that records the version, and are refused.
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

// at adds the line of the file at which a statement failed: PostgreSQL returns the position in the statement,
// in characters.
func (s script) at(stmt sqlscript.Statement, err error) error {
	line := stmt.Line
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Position > 0 {
		before := []rune(stmt.Text)[:min(int(e.Position)-1, len([]rune(stmt.Text)))]
		line = 1 + strings.Count(s.text[:stmt.Offset], "\n") + strings.Count(string(before), "\n")
	}
	return &lineError{line: line, statement: stmt.Text, err: err}
}

// lineError is an error in a line of a migration, with its statement if there is one. Run fills in the file.
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
