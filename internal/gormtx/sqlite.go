package gormtx

import (
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/surfin-batch/surfin/internal/dberr"
)

// gorm.io/driver/sqlite imports a second SQLite, in C, which every cold build would compile.
type sqliteDialector struct{ conn gorm.ConnPool }

var (
	_ gorm.ErrorTranslator               = sqliteDialector{}
	_ gorm.SavePointerDialectorInterface = sqliteDialector{}
)

func (sqliteDialector) Name() string { return "sqlite" }

func (d sqliteDialector) Initialize(db *gorm.DB) error {
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		CreateClauses:        []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses:        []string{"UPDATE", "SET", "FROM", "WHERE", "RETURNING"},
		DeleteClauses:        []string{"DELETE", "FROM", "WHERE", "RETURNING"},
		LastInsertIDReversed: true,
	})
	db.ClauseBuilders["LIMIT"] = limit
	db.ClauseBuilders["FOR"] = noLock
	db.ConnPool = d.conn
	return nil
}

func limit(c clause.Clause, b clause.Builder) {
	l, ok := c.Expression.(clause.Limit)
	if !ok {
		return
	}
	rows := -1
	if l.Limit != nil && *l.Limit >= 0 {
		rows = *l.Limit
	}
	if rows >= 0 || l.Offset > 0 {
		write(b, "LIMIT "+strconv.Itoa(rows))
	}
	if l.Offset > 0 {
		write(b, " OFFSET "+strconv.Itoa(l.Offset))
	}
}

// noLock leaves out FOR UPDATE: a transaction that writes is alone.
func noLock(c clause.Clause, b clause.Builder) {
	if _, ok := c.Expression.(clause.Locking); !ok {
		c.Build(b)
	}
}

// For others SQLite has no word in VALUES: it refuses DEFAULT, and would store NULL.
func (sqliteDialector) DefaultValueOf(f *schema.Field) clause.Expression {
	if f.AutoIncrement {
		return clause.Expr{SQL: "NULL"}
	}
	return clause.Expr{SQL: "DEFAULT"}
}

func (sqliteDialector) BindVarTo(w clause.Writer, _ *gorm.Statement, _ any) { write(w, "?") }

// In double quotes SQLite would take an unknown name for a text.
func (sqliteDialector) QuoteTo(w clause.Writer, name string) {
	for i, part := range split(name) {
		if i > 0 {
			write(w, ".")
		}
		if len(part) < 2 || part[0] != '`' || part[len(part)-1] != '`' {
			part = "`" + strings.ReplaceAll(part, "`", "``") + "`"
		}
		write(w, part)
	}
}

// split divides at the dots outside of backticks.
func split(name string) (parts []string) {
	quoted, from := false, 0
	for i, c := range []byte(name) {
		switch {
		case c == '`':
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, name[from:i])
			from = i + 1
		}
	}
	return append(parts, name[from:])
}

func (sqliteDialector) Explain(sql string, vars ...any) string {
	return logger.ExplainSQL(sql, nil, `"`, vars...)
}

func (sqliteDialector) DataTypeOf(f *schema.Field) string { return string(f.DataType) }

func (sqliteDialector) Migrator(*gorm.DB) gorm.Migrator { return noMigrator{} }

func (sqliteDialector) Translate(err error) error {
	switch {
	case dberr.IsUniqueViolation(err):
		return fmt.Errorf("%w: %w", gorm.ErrDuplicatedKey, err)
	case dberr.IsForeignKeyViolation(err):
		return fmt.Errorf("%w: %w", gorm.ErrForeignKeyViolated, err)
	case dberr.IsCheckViolation(err):
		return fmt.Errorf("%w: %w", gorm.ErrCheckConstraintViolated, err)
	}
	return err
}

func (sqliteDialector) SavePoint(db *gorm.DB, name string) error { return savePoint(db, name) }

func (sqliteDialector) RollbackTo(db *gorm.DB, name string) error { return rollbackTo(db, name) }

func write(w clause.Writer, text string) {
	_, _ = w.WriteString(text) //nolint:errcheck // a strings.Builder
}
