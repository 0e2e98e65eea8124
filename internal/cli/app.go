package cli

import (
	"context"
	"log/slog"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Settings are for App.Open.
type Settings = settings.Settings

// App is the application that the command line runs.
type App struct {
	Name, Version string
	// Registry holds descriptors only: no database is opened.
	Registry *registry.Registry
	// Files are embedded jobs by name; may be nil.
	Files map[string]*jobfile.File
	// Handlers returns the types of tasks that the program executes, for
	// validate; may be nil.
	Handlers func(s Settings) (jobfile.HandlerTypes, error)
	// CheckNeeds reports missing dependencies of components, for validate; may be nil.
	CheckNeeds func() error
	// Log gets the handler of the program's log, for what components log; may be nil.
	Log func(h slog.Handler)
	// Open builds a session. The repository's schema need not exist yet.
	Open func(ctx context.Context, s Settings, observer core.Observer) (*Session, error)
}

// Session runs jobs, until Close.
type Session struct {
	Service  *operator.Service
	Tasks    *runtime.TaskService
	Provider tx.Provider
	// Observer may be nil.
	Observer core.Observer
	// Work is a worker until stop is closed.
	Work  func(ctx context.Context, stop <-chan struct{}, o runtime.Options) error
	Close func(ctx context.Context) error
}
