package repository

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// place is a database with tables of ours in it, under a prefix.
type place struct {
	db      tx.Database
	manager *tx.Manager
	prefix  string
	gorm    *gorm.DB
	names   *strings.Replacer
}

func newPlace(db tx.Database, prefix string) *place {
	p := &place{db: db, manager: tx.NewManager(db), prefix: prefix}
	if p.prefix == "" {
		p.prefix = DefaultPrefix
	}
	p.names = p.replacer()
	p.gorm = p.open()
	return p
}

func (p *place) open() *gorm.DB {
	base, err := gormtx.Open(p.db, gormtx.Options{
		QueryFields: true, Naming: schema.NamingStrategy{TablePrefix: p.prefix, SingularTable: true},
	})
	if err != nil { // neither dialect has a way to fail
		panic(fmt.Sprintf("repository: %v", err))
	}
	return base
}

// session returns gorm on the connection that ctx asks for.
func (p *place) session(ctx context.Context) *gorm.DB { return gormtx.Session(ctx, p.gorm, p.db) }

// attr asks for READ COMMITTED by name: with a server's default above it, what
// was committed while a statement waited for its lock would stay unseen, or fail
// the statement. SQLite has nothing to ask for.
func (p *place) attr() tx.Attr {
	if p.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}

// columns lists the columns of a row by name, for queries that add one.
func (p *place) columns(row any) string {
	s := &gorm.Statement{DB: p.gorm}
	if err := s.Parse(row); err != nil { // the rows are this package's own
		panic(fmt.Sprintf("repository: gorm: %v", err))
	}
	names := make([]string, len(s.Schema.DBNames))
	for i, name := range s.Schema.DBNames {
		names[i] = p.db.Dialect().Quote(s.Schema.Table + "." + name)
	}
	return strings.Join(names, ", ")
}

// sql fills in the names of the tables and the database's clock: {job_execution}
// and its like, {now}, and {later}, which is now plus a bind variable in
// microseconds.
func (p *place) sql(text string) string { return p.names.Replace(text) }

func (p *place) replacer() *strings.Replacer {
	pairs := []string{"{now}", now(p.db.Dialect()), "{later}", later(p.db.Dialect())}
	for _, table := range tableNames() {
		pairs = append(pairs, "{"+table+"}", p.db.Dialect().Quote(p.prefix+table))
	}
	return strings.NewReplacer(pairs...)
}

func tableNames() []string {
	return []string{"job_instance", "job_execution", "job_execution_param", "step_execution", "flow_visit", "skipped_item", "audit", "repository", "checkpoint", "checkpoint_skip"}
}

func (p *place) checkPrefix() error {
	if regexp.MustCompile(`^[a-z_][a-z0-9_]{0,29}$`).MatchString(p.prefix) {
		return nil
	}
	return fmt.Errorf("table prefix %q of the repository is not a plain lower-case identifier of at most 30 characters", p.prefix)
}
