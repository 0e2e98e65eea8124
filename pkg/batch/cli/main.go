// Package cli is the surfin command with an application's components: a whole program. An application that
// embeds the engine imports package batch alone.
//
// It imports package batch, internal/assembly, internal/cli, core and fx.
package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Main runs the surfin command with opts and ends the process with its exit code. Their values are built
// only when jobs run; an fx.Invoke runs with every command. A registered job is named instead of a file: run
// NAME.
func Main(opts ...fx.Option) {
	app, err := newCommand(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(command.ExitUsage)
	}
	app.Log = func(h slog.Handler) { slog.SetDefault(slog.New(h)) }
	os.Exit(command.Main(context.Background(), app, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func newCommand(opts ...fx.Option) (command.App, error) {
	registry, files, err := assembly.Describe(opts...)
	if err != nil {
		return command.App{}, dig.RootCause(err)
	}
	return command.App{
		Name: programName(), Version: version(), Registry: registry, Files: files,
		Handlers:   func(s batch.Settings) (assembly.HandlerTypes, error) { return assembly.TaskHandlers(s, opts...) },
		CheckNeeds: func() error { return assembly.CheckNeeds(batch.Module(batch.Settings{}), opts...) },
		Open: func(ctx context.Context, s batch.Settings, observer core.Observer) (*command.Session, error) {
			return open(ctx, s, append(opts[:len(opts):len(opts)], batch.Observe(observer), batch.Log(nil))...)
		},
	}, nil
}

func open(ctx context.Context, s batch.Settings, opts ...fx.Option) (*command.Session, error) {
	a, err := batch.New(ctx, s, opts...)
	if err != nil {
		return nil, err
	}
	return &command.Session{Service: a.Service, Tasks: a.Tasks, Provider: a.Databases, Observer: a.Observer, Work: a.Work, Close: a.Close}, nil
}

func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// "devel" in a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
