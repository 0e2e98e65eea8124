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
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type store struct {
	db      tx.Database
	manager *tx.Manager
	prefix  string
	gorm    *gorm.DB
	names   *strings.Replacer
	mask    func(text string) string
	// records and judged cache two long SQL texts, keyed by brief: the SELECT list of an execution,
	// and the query that loads executions by ID.
	records, judged map[bool]string
}

func newStore(db tx.Database, prefix string) *store {
	p := (&store{db: db, manager: tx.NewManager(db), prefix: prefix}).masking(nil)
	if p.prefix == "" {
		p.prefix = DefaultPrefix
	}
	p.names = p.replacer()
	p.gorm = p.open()
	p.records, p.judged = map[bool]string{}, map[bool]string{}
	for _, brief := range []bool{true, false} {
		p.records[brief] = p.recordColumns(brief)
		p.judged[brief] = "SELECT " + p.records[brief] + p.sql(judgedColumns+newestColumn+" FROM {job_execution} WHERE id {among}")
	}
	return p
}

func (s *store) open() *gorm.DB {
	base, err := gormtx.Open(s.db, gormtx.Options{
		QueryFields: true, Naming: schema.NamingStrategy{TablePrefix: s.prefix, SingularTable: true},
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
	return s.manager.Do(ctx, s.attr(), f)
}

// attr requests READ COMMITTED explicitly: with a stricter server default, rows committed while a
// statement waited for its lock would stay unseen, or fail the statement. SQLite needs nothing.
func (s *store) attr() tx.Attr {
	if s.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
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

// recordColumns returns the columns of a record; brief leaves out those that
// core.ExecutionFilter.Brief does.
func (s *store) recordColumns(brief bool) string {
	moves := []string{"status_before", "active", "step_count", "last_epoch"}
	unlisted := []string{"last_move", "context", "definition_text", "definition_files", "definition_hash", "job_time", "exclusive_key", "task_id", "parent_call", "epoch"}
	columns := slices.DeleteFunc(s.columnNames(&jobExecution{}), func(name string) bool {
		return slices.Contains(moves, name) || brief && slices.Contains(unlisted, name)
	})
	if brief {
		columns = append(columns, "CASE WHEN definition_path = '' THEN definition_text ELSE '' END AS definition_text")
	}
	return strings.Join(columns, ", ") + s.sql(", "+paramsColumn)
}

func (s *store) schemaOf(row any) *schema.Schema {
	statement := &gorm.Statement{DB: s.gorm}
	if err := statement.Parse(row); err != nil { // the rows are this package's own types
		panic(fmt.Sprintf("repository: gorm: %v", err))
	}
	return statement.Schema
}

// sql fills in the names of the tables ({job_execution} and so on) and the database's clock: {now},
// and {later}, which is now plus a bind variable in microseconds; and {among}, the condition that
// the preceding column is in an idList.
func (s *store) sql(text string) string { return s.names.Replace(text) }

func (s *store) replacer() *strings.Replacer {
	pairs := []string{"{now}", gormtx.Now(s.db.Dialect()), "{later}", gormtx.Later(s.db.Dialect()), "{among}", among(s.db.Dialect())}
	for _, table := range tableNames() {
		pairs = append(pairs, "{"+table+"}", s.db.Dialect().Quote(s.prefix+table))
	}
	return strings.NewReplacer(pairs...)
}

func tableNames() []string {
	return []string{"job_instance", "instance_identity", "job_execution", "job_execution_param", "step_execution", "flow_visit", "skipped_item", "audit", "task_audit", "purged_parameter", "purged_position", "repository", "checkpoint", "checkpoint_skip", "client_request", "job_definition", "task", "task_group", "event", "worker", "placement", "leader"}
}

func (s *store) checkPrefix() error {
	if regexp.MustCompile(`^[a-z_][a-z0-9_]{0,29}$`).MatchString(s.prefix) {
		return nil
	}
	return fmt.Errorf("table prefix %q of the repository is not a plain lower-case identifier of at most 30 characters", s.prefix)
}
