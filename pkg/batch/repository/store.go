package repository

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// batchSize is the number of executions whose IDs one statement has: below the databases' limits of
// bind variables.
const batchSize = 1000

// store runs the statements in one database.
type store struct {
	db      tx.Database
	manager *tx.Manager
	prefix  string
	gorm    *gorm.DB
	names   *strings.Replacer
	mask    func(text string) string
}

func newStore(db tx.Database, prefix string) *store {
	s := (&store{db: db, manager: tx.NewManager(db), prefix: prefix}).masking(nil)
	s.names = s.replacer()
	s.gorm = s.open()
	return s
}

func (s *store) open() *gorm.DB {
	base, err := gormtx.Open(s.db, gormtx.Options{
		History: true, QueryFields: true, Naming: schema.NamingStrategy{TablePrefix: s.prefix, SingularTable: true},
	})
	if err != nil { // cannot fail in either dialect
		panic(fmt.Sprintf("repository: %v", err))
	}
	return base
}

func (s *store) session(ctx context.Context) *gorm.DB { return gormtx.Session(ctx, s.gorm, s.db) }

// scan runs a query and fills dest, a pointer to a slice or a value, with its rows. text may use
// the placeholders of sql.
func (s *store) scan(ctx context.Context, dest any, text string, args ...any) error {
	return gormtx.Scan(s.session(ctx).Raw(s.sql(text), args...), dest)
}

// exec runs a statement without rows. text may use the placeholders of sql.
func (s *store) exec(ctx context.Context, text string, args ...any) *gorm.DB {
	return s.session(ctx).Exec(s.sql(text), s.masked(args)...)
}

func (s *store) transact(ctx context.Context, f func(ctx context.Context) error) error {
	return gormtx.Transact(ctx, s.manager, s.attr(), f)
}

// attr requests READ COMMITTED explicitly: with a stricter server default, rows committed while a
// statement waited for its lock would stay unseen, or fail the statement. SQLite needs nothing.
func (s *store) attr() tx.Attr {
	if s.db.Dialect() == tx.Postgres { // sessions of MySQL have it
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}

// sql fills in the names of the tables ({job_execution} and so on) and the database's clock: {now},
// and {later}, which is now plus a bind variable in microseconds; {among}, the condition that
// the preceding column is in an idList; and the locks of rows, such as {for share}.
func (s *store) sql(text string) string { return s.names.Replace(text) }

func (s *store) replacer() *strings.Replacer {
	locks := map[tx.Dialect][3]string{ // SQLite has one writer
		tx.Postgres: {"FOR NO KEY UPDATE", "FOR SHARE", "SKIP LOCKED"}, tx.MySQL: {"FOR UPDATE", "LOCK IN SHARE MODE", "SKIP LOCKED"},
	}[s.db.Dialect()]
	pairs := []string{
		"{for no key update}", locks[0], "{for share}", locks[1], "{skip locked}", locks[2],
		"{among}", among(s.db.Dialect()),
	}
	pairs = append(pairs, gormtx.Words(s.db.Dialect())...)
	for _, table := range tableNames() {
		pairs = append(pairs, "{"+table+"}", s.db.Dialect().Quote(s.prefix+table))
	}
	return strings.NewReplacer(pairs...)
}

func tableNames() []string {
	return []string{"job_instance", "instance_identity", "job_execution", "job_execution_param", "step_execution", "step_series", "flow_visit", "skipped_item", "audit", "task_audit", "purged_parameter", "purged_position", "repository", "checkpoint", "checkpoint_skip", "client_request", "job_definition", "task", "task_group", "task_attempt", "event", "worker", "placement", "leader", "execution_log", "log_line"}
}

func (s *store) checkPrefix() error {
	if regexp.MustCompile(`^[a-z_][a-z0-9_]{0,29}$`).MatchString(s.prefix) {
		return nil
	}
	return fmt.Errorf("table prefix %q of the repository is not a plain lower-case identifier of at most 30 characters", s.prefix)
}

// masking sets the function that is applied to texts before they are stored; nil leaves them
// unchanged.
func (s *store) masking(mask func(text string) string) *store {
	if mask == nil {
		mask = func(text string) string { return text }
	}
	s.mask = func(text string) string {
		masked := mask(text)
		if masked != text && strings.HasPrefix(text, contextBegins) {
			return maskedContext(text, masked, mask)
		}
		return masked
	}
	return s
}

// Stored contexts begin so.
const contextBegins = `{"values":{`

// maskedContext leaves the keys of a context, and the framework's own values: without its list of files a later
// step would find nothing to do.
func maskedContext(text, masked string, mask func(text string) string) string {
	c, err := core.ParseExecutionContext([]byte(text))
	if err != nil {
		return masked
	}
	for _, key := range c.Keys() {
		value, _ := c.Get(key)
		hidden := mask(fmt.Sprint(value))
		if hidden == fmt.Sprint(value) || strings.HasPrefix(key, ownKeys) {
			continue
		}
		if err := c.Put(key, hidden); err != nil {
			return masked
		}
	}
	data, err := c.Encode()
	if err != nil {
		return masked
	}
	return string(data)
}

const ownKeys = "surfin."

func (s *store) masks(text string) bool { return s.mask(text) != text }

func (s *store) masked(args []any) []any {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = s.mask(text)
		}
	}
	return args
}

// columns lists the columns of a row by name, for queries that add one.
func (s *store) columns(row any) string {
	table := s.schemaOf(row)
	names := make([]string, len(table.DBNames))
	for i, name := range table.DBNames {
		names[i] = s.db.Dialect().Quote(table.Table + "." + name)
	}
	return strings.Join(names, ", ")
}

func (s *store) columnNames(row any) []string { return slices.Clone(s.schemaOf(row).DBNames) }

func (s *store) schemaOf(row any) *schema.Schema {
	statement := &gorm.Statement{DB: s.gorm}
	if err := statement.Parse(row); err != nil { // the rows are this package's own types
		panic(fmt.Sprintf("repository: gorm: %v", err))
	}
	return statement.Schema
}

// The maximum number of bind variables in one INSERT of many rows. In SQLite's driver the time per
// variable grows with their number, and there is no round trip to save: a row of 11 costs 22 µs in
// statements of 10 rows, and 1100 µs in one of 1000. PostgreSQL takes 9 µs in each, and saves round
// trips.
const (
	sqliteBinds = 165
	serverBinds = 5000
)

// valuesRow returns "(?, ?, MORE)" in the dialect, with bind variables that follow the first n.
func (s *store) valuesRow(n, columns int, more ...string) string {
	binds := append(make([]string, columns), more...)
	for i := range columns {
		binds[i] = s.bindVariable(n + i + 1)
	}
	return "(" + strings.Join(binds, ", ") + ")"
}

func (s *store) rowsAtOnce(columns int) int {
	if s.db.Dialect() == tx.SQLite {
		return max(1, sqliteBinds/columns)
	}
	return max(1, serverBinds/columns)
}

// bindVariable returns the nth bind variable of a statement that uses them in order. SQLite
// compares a numbered variable with all earlier ones, which takes minutes if there are many.
func (s *store) bindVariable(n int) string {
	if s.db.Dialect() != tx.Postgres {
		return "?"
	}
	return s.db.Dialect().Placeholder(n)
}
