package operator

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/job"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Config is what a service works with.
type Config struct {
	Repository core.JobRepository
	// Launcher runs what is started; nil: the service only reads and acts on what is there.
	Launcher *job.Launcher
	// Provider and Registry are what job files are compiled against. The registry has
	// factories.
	Provider tx.Provider
	Registry *registry.Registry
	// FileMode are the permissions of files that components make; 0: 0600.
	FileMode fs.FileMode
	// Secrets is jobfile.Deps.Secrets.
	Secrets jobfile.Secrets
	// Distributed is jobfile.Deps.Distributed.
	Distributed bool

	// Files are the job files that the application carries, and the jobs that package
	// define has made, by the names of their jobs; nil: none.
	Files map[string]*jobfile.File
	// Jobs finds a job of Go code by its name; core.ErrNoSuchJob where there is none.
	// nil: jobs are files.
	Jobs func(ctx context.Context, name string) (*core.Job, error)

	// Database is the name of the repository's database; empty: tx.Default.
	Database string
	// Schema makes and checks the repository's tables; nil: they are taken as they are.
	Schema Schema
	// AutoMigrate reports whether Prepare makes the tables in a database of this dialect;
	// nil: it only checks them.
	AutoMigrate func(dialect tx.Dialect) bool
	// Checkpoints are the tables in databases other than the repository's (rule C18);
	// nil: there are none.
	Checkpoints Checkpoints

	// Tasks runs the steps whose work are tasks; nil: jobs can have none.
	Tasks jobfile.Tasks

	// Workers knows the workers that share the database; nil: it is not known whether any is
	// alive. Engine is the name of what brings work to them.
	Workers Workers
	Engine  string

	// Definitions are the jobs that are registered; nil: the service knows of none.
	Definitions task.Definitions

	// Figures reads numbers of the history for metrics; nil: there are none.
	Figures FiguresSource

	// Acts is the audit of what was done; nil: there is none to list.
	Acts core.Acts

	// Actor is who acts, for the audit; empty: the user and the host.
	Actor string
	// Dead reports whether an owner is known to be dead; nil: job.DeadOwner.
	Dead func(core.Owner) bool
	// Notify tells the owner of an execution of another process that a stop was asked
	// for; nil: it reads the request at its next heartbeat or commit.
	Notify func(ctx context.Context, exec core.JobExecution) error
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Schema is the repository's schema: a repository.Repository.
type Schema interface {
	Migrate(ctx context.Context) error
	// CheckSchema returns core.ErrSchemaMissing where Migrate is needed.
	CheckSchema(ctx context.Context) error
}

// Checkpoints are the tables for checkpoints in databases other than the
// repository's: a repository.Checkpoints.
type Checkpoints interface {
	core.CheckpointReader
	Migrate(ctx context.Context, database string) error
	// CheckSchema returns core.ErrSchemaMissing where Migrate is needed.
	CheckSchema(ctx context.Context, database string) error
	// CollectGarbage deletes the checkpoints of instances that were deleted.
	CollectGarbage(ctx context.Context, database string) (int64, error)
}

// Service runs and operates jobs. It is safe for concurrent use.
type Service struct {
	config   Config
	prepared atomic.Bool // the schema is as it should be
	files    sync.Map    // a jobfile.Source by the job's name
	runnings runnings
}

// New checks the configuration and fills in the defaults.
func New(config Config) (*Service, error) {
	if config.Repository == nil {
		return nil, errors.New("a service needs a repository")
	}
	if config.Database == "" {
		config.Database = tx.Default
	}
	if config.Actor == "" {
		config.Actor = CurrentActor()
	}
	if config.Dead == nil {
		config.Dead = job.DeadOwner
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Service{config: config}, nil
}
