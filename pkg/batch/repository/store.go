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
	// Two long SQL texts, cached by brief.
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
	if err != nil { // cannot fail
		panic(fmt.Sprintf("repository: %v", err))
	}
	return base
}

func (s *store) session(ctx context.Context) *gorm.DB { return gormtx.Session(ctx, s.gorm, s.db) }

// dest points to a slice or a value.
func (s *store) scan(ctx context.Context, dest any, text string, args ...any) error {
	return gormtx.Scan(s.session(ctx).Raw(s.sql(text), args...), dest)
}

func (s *store) exec(ctx context.Context, text string, args ...any) *gorm.DB {
	return s.session(ctx).Exec(s.sql(text), s.masked(args)...)
}

func (s *store) transact(ctx context.Context, f func(ctx context.Context) error) error {
	return s.manager.Do(ctx, s.attr(), f)
}

// READ COMMITTED explicitly: under a stricter default, rows committed during a wait for a lock would be unseen
// or fail.
func (s *store) attr() tx.Attr {
	if s.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}

func (s *store) columns(row any) string {
	table := s.schemaOf(row)
	names := make([]string, len(table.DBNames))
	for i, name := range table.DBNames {
		names[i] = s.db.Dialect().Quote(table.Table + "." + name)
	}
	return strings.Join(names, ", ")
}

func (s *store) columnNames(row any) []string { return slices.Clone(s.schemaOf(row).DBNames) }

// brief as in core.ExecutionFilter.Brief.
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
	if err := statement.Parse(row); err != nil { // our own types
		panic(fmt.Sprintf("repository: gorm: %v", err))
	}
	return statement.Schema
}

// sql fills in {job_execution} and so on, {now}, {later} (now plus a bind variable in microseconds) and
// {among}.
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
