package operator

import (
	"context"
	"io/fs"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Config configures a Service.
type Config struct {
	Repository ports.Repository
	// Launcher may be nil: the service only reads and acts on existing
	// executions.
	Launcher *job.Launcher
	Provider tx.Provider
	Registry *registry.Registry
	// FileMode is for files that components create; 0 means 0600.
	FileMode    fs.FileMode
	Secrets     Secrets
	Places      *place.Set
	Distributed bool

	// Files are the job files of the application, by job name; may be nil.
	Files map[string]*jobfile.File
	// Jobs finds a job of Go code, or returns ports.ErrNoSuchJob; may be nil.
	Jobs func(ctx context.Context, name string) (*model.Job, error)

	// Database is the repository's; empty means tx.Default.
	Database string
	// Schema checks the repository's tables; if nil, they are unchecked.
	Schema Schema
	// AutoMigrate reports whether Prepare may create the tables; nil means no.
	AutoMigrate func(dialect tx.Dialect) bool
	// Checkpoints are the tables in other databases (rule C18); may be nil.
	Checkpoints Checkpoints

	// Tasks runs the steps that submit tasks; may be nil.
	Tasks jobfile.Tasks
	// OpenTasks are the submitted groups of those steps; required if there are Tasks.
	OpenTasks OpenTasks

	// Workers lists the workers; nil means unknown.
	Workers Workers
	Engine  string

	Definitions taskports.Definitions

	Figures FiguresSource

	// Attention and JobHistory are for overviews and summaries of jobs; nil means that there are none.
	Attention  ports.Attention
	JobHistory ports.JobHistory
	// Heartbeat is the time between two signs of life of an owner; 0 means job.DefaultHeartbeat.
	Heartbeat time.Duration

	Acts ports.Acts

	Changes ports.Changes

	// Paths are the folders of a server's clients, in addition to the job file's.
	Paths []string
	// Actor is for the audit; empty means the user and the host.
	Actor string
	// Dead reports whether an owner is dead; nil means job.DeadOwner.
	Dead func(core.Owner) bool
	// Notify notifies the owner in another process of a stop; if nil, it reads
	// the request at its next heartbeat or commit.
	Notify func(ctx context.Context, exec core.JobExecution) error
	Now    func() time.Time
}

// Secrets finds secrets, and hides those that it has found.
type Secrets interface {
	jobfile.Secrets
	// Values hides them in a text, JSON in a document, which stays valid.
	Values(text string) string
	JSON(document []byte) []byte
}

// OpenTasks are the groups of tasks that steps have submitted.
type OpenTasks interface {
	// HandlerWarnings warns if no live worker executes tasks of the type.
	HandlerWarnings(ctx context.Context, handler string) (warnings []string, err error)
	// GiveUp cancels the unfinished tasks of the instance.
	GiveUp(ctx context.Context, instance core.JobInstanceID, reason string) error
}

// Schema is the repository's schema.
type Schema interface {
	Migrate(ctx context.Context) error
	// CheckSchema returns core.ErrSchemaMissing if Migrate is needed.
	CheckSchema(ctx context.Context) error
}

// Checkpoints are the tables for checkpoints in other databases.
type Checkpoints interface {
	ports.CheckpointReader
	Migrate(ctx context.Context, database string) error
	CheckSchema(ctx context.Context, database string) error
	// CollectGarbage deletes the checkpoints of deleted instances.
	CollectGarbage(ctx context.Context, database string) (int64, error)
}

// FiguresSource reads figures of the history.
type FiguresSource interface {
	// Figures returns all figures except the schedules', and when the oldest
	// scheduled run that has not begun was submitted, by definition ID.
	Figures(ctx context.Context) (core.Figures, map[int64]time.Time, error)
}
