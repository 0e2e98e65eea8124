package cli

import (
	"context"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Settings are the parameters of App.Open: package settings documents them.
type Settings = settings.Settings

// App is the application that the command line runs.
type App struct {
	// Name is the program's name in its help and hints.
	Name, Version string
	// Registry holds descriptors only: validate, list components, describe and
	// schema open no database.
	Registry *registry.Registry
	// Files are jobs embedded in the program, by their names, which can be used in place of files
	// on the command line; may be nil.
	Files map[string]*jobfile.File
	// Handlers returns the types of tasks that the program executes with these settings, for
	// validate; if nil, they are unknown.
	Handlers func(s Settings) (jobfile.HandlerTypes, error)
	// Open builds a session that runs jobs. The repository's schema need not exist yet.
	Open func(ctx context.Context, s Settings, observer core.Observer) (*Session, error)
}

// Session runs jobs, until Close.
type Session struct {
	// Service runs and operates jobs.
	Service *operator.Service
	// Tasks submits and operates tasks.
	Tasks *runtime.TaskService
	// Provider has the databases, for sql.
	Provider tx.Provider
	// Observer is all observers of the application; may be nil.
	Observer core.Observer
	// Work executes tasks, and runs partitions of other processes' jobs, until stop is closed.
	Work  func(ctx context.Context, stop <-chan struct{}, o runtime.Options) error
	Close func(ctx context.Context) error
}
