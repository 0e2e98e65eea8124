package repository

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// DefaultPrefix begins the name of every table, unless Options say otherwise.
const DefaultPrefix = "surfin_"

// Options adjust a repository.
type Options struct {
	// Prefix begins the name of every table; empty: DefaultPrefix. It is a plain
	// lower-case identifier: letters, digits and underscores, not a digit first, at
	// most 30 characters. Another one is reported by Migrate and CheckSchema.
	Prefix string
	// Observer is told of every transition and its answer; may be nil.
	Observer core.Observer
}

// Repository is a core.JobRepository. It is safe for concurrent use.
//
// Every method uses the transaction that ctx carries for the repository's
// database, if there is one, and else a connection or transaction of its own.
type Repository struct {
	db       tx.Database
	manager  *tx.Manager
	prefix   string
	observer core.Observer
	gorm     *gorm.DB
	names    *strings.Replacer
	// checkpoints are the texts of the one statement that is executed per chunk,
	// without and with the execution context.
	checkpoints [2]string
}

var _ core.JobRepository = (*Repository)(nil)

// New returns the repository in db. It does no I/O: CheckSchema says whether the
// tables are there.
func New(db tx.Database, options Options) *Repository {
	r := &Repository{
		db: db, manager: tx.NewManager(db),
		prefix: options.Prefix, observer: core.Observers(options.Observer),
	}
	if r.prefix == "" {
		r.prefix = DefaultPrefix
	}
	r.names = r.replacer()
	r.gorm = r.open()
	r.checkpoints = [2]string{r.checkpointSQL(false), r.checkpointSQL(true)}
	return r
}

// Database returns the name of the database in which the repository lives.
func (r *Repository) Database() string { return r.db.Name() }

// open binds gorm to the database's connection. Nothing of gorm is used that
// would keep a connection, a transaction or a prepared statement: all three are
// tx's business, and a pool may be swapped at any moment (rule T7).
func (r *Repository) open() *gorm.DB {
	db, err := gorm.Open(dialectorOf(r.db), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		QueryFields:            true, // columns by name, never *
		Logger:                 logger.Discard,
		NamingStrategy:         schema.NamingStrategy{TablePrefix: r.prefix, SingularTable: true},
	})
	if err != nil { // neither dialector of ours has a way to fail
		panic(fmt.Sprintf("repository: gorm: %v", err))
	}
	return db
}

// session returns gorm on the connection that ctx asks for.
func (r *Repository) session(ctx context.Context) *gorm.DB {
	s := r.gorm.Session(&gorm.Session{NewDB: true, Context: ctx})
	s.Statement.ConnPool = tx.ConnOf(ctx, r.db)
	return s
}

// attr asks for READ COMMITTED by name: with a server's default above it, what
// was committed while a statement waited for its lock would stay unseen, or fail
// the statement. SQLite has nothing to ask for.
func (r *Repository) attr() tx.Attr {
	if r.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}

// columns lists the columns of a row by name, for queries that add one.
func (r *Repository) columns(row any) string {
	s := &gorm.Statement{DB: r.gorm}
	if err := s.Parse(row); err != nil { // the rows are this package's own
		panic(fmt.Sprintf("repository: gorm: %v", err))
	}
	names := make([]string, len(s.Schema.DBNames))
	for i, name := range s.Schema.DBNames {
		names[i] = r.db.Dialect().Quote(s.Schema.Table + "." + name)
	}
	return strings.Join(names, ", ")
}

// sql fills in the names of the tables and the database's clock: {job_execution}
// and its like, {now}, and {later}, which is now plus a bind variable in
// microseconds.
func (r *Repository) sql(text string) string { return r.names.Replace(text) }

func (r *Repository) replacer() *strings.Replacer {
	pairs := []string{"{now}", now(r.db.Dialect()), "{later}", later(r.db.Dialect())}
	for _, table := range tables() {
		pairs = append(pairs, "{"+table+"}", r.db.Dialect().Quote(r.prefix+table))
	}
	return strings.NewReplacer(pairs...)
}

func tables() []string {
	return []string{"job_instance", "job_execution", "job_execution_param", "step_execution", "skipped_item", "audit"}
}

func (r *Repository) checkPrefix() error {
	if regexp.MustCompile(`^[a-z_][a-z0-9_]{0,29}$`).MatchString(r.prefix) {
		return nil
	}
	return fmt.Errorf("table prefix %q of the repository is not a plain lower-case identifier of at most 30 characters", r.prefix)
}
