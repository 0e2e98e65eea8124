package operator

import (
	"context"
	"io/fs"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Config configures a Service.
type Config struct {
	Repository ports.JobRepository
	// Launcher runs started jobs; if nil, the service only reads and acts on existing executions.
	Launcher *job.Launcher
	// Provider and Registry are used to compile job files. The registry has factories.
	Provider tx.Provider
	Registry *registry.Registry
	// FileMode is the permissions of files that components create; 0 means 0600.
	FileMode fs.FileMode
	// Secrets and Distributed are as in jobfile.Deps.
	Secrets     jobfile.Secrets
	Distributed bool

	// Files are the job files that the application carries, and the jobs that package define has
	// made, by job name; may be nil.
	Files map[string]*jobfile.File
	// Jobs finds a job of Go code by its name, or returns core.ErrNoSuchJob; nil means that jobs
	// are files.
	Jobs func(ctx context.Context, name string) (*model.Job, error)

	// Database is the name of the repository's database; empty means tx.Default.
	Database string
	// Schema creates and checks the repository's tables; if nil, they are used unchecked.
	Schema Schema
	// AutoMigrate reports whether Prepare creates the tables in a database of this dialect; if nil,
	// it only checks them.
	AutoMigrate func(dialect tx.Dialect) bool
	// Checkpoints are the tables in databases other than the repository's (rule C18); nil means
	// none.
	Checkpoints Checkpoints

	// Tasks runs the steps that submit tasks; if nil, jobs can have none.
	Tasks jobfile.Tasks

	// Workers lists the workers that share the database; if nil, it is unknown whether any is
	// alive. Engine is the name of the engine that delivers work to them.
	Workers Workers
	Engine  string

	// Definitions are the registered jobs; nil means none.
	Definitions taskports.Definitions

	// Figures reads numbers of the history for metrics; nil means none.
	Figures FiguresSource

	// Acts is the audit of acts; nil means none.
	Acts ports.Acts

	// Actor is the actor for the audit; empty means the user and the host.
	Actor string
	// Dead reports whether an owner is known to be dead; nil means job.DeadOwner.
	Dead func(core.Owner) bool
	// Notify notifies the owner of an execution in another process that a stop was requested; if
	// nil, the owner reads the request at its next heartbeat or commit.
	Notify func(ctx context.Context, exec core.JobExecution) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Schema is the repository's schema: a repository.Repository.
type Schema interface {
	Migrate(ctx context.Context) error
	// CheckSchema returns core.ErrSchemaMissing if Migrate is needed.
	CheckSchema(ctx context.Context) error
}

// Checkpoints are the tables for checkpoints in databases other than the repository's: a
// repository.Checkpoints.
type Checkpoints interface {
	ports.CheckpointReader
	Migrate(ctx context.Context, database string) error
	// CheckSchema returns core.ErrSchemaMissing if Migrate is needed.
	CheckSchema(ctx context.Context, database string) error
	// CollectGarbage deletes the checkpoints of deleted instances.
	CollectGarbage(ctx context.Context, database string) (int64, error)
}

// FiguresSource reads figures of the history: a repository.Repository.
type FiguresSource interface {
	// Figures returns all figures except the schedules', and when the oldest scheduled run of each
	// definition that has not begun was submitted, by the definition's ID.
	Figures(ctx context.Context) (core.Figures, map[int64]time.Time, error)
}
