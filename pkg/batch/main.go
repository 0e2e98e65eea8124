package batch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli/settings"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Main is the surfin command with the components that opts register: it reads the
// command line, runs the command and ends the process with its exit code (see
// cli.Main). opts may hold any fx option; what they provide is built only when a
// command runs jobs, but an fx.Invoke among them runs with every command.
func Main(opts ...fx.Option) {
	registry, err := NewRegistry(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", rootCause(err))
		os.Exit(cli.ExitUsage)
	}
	app := cli.App{
		Name: programName(), Version: version(), Registry: registry,
		Open: func(ctx context.Context, s Settings, observer core.Observer) (*cli.Session, error) {
			return open(ctx, s, append(opts[:len(opts):len(opts)], Observe(observer))...)
		},
	}
	os.Exit(cli.Main(context.Background(), app, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func open(ctx context.Context, s Settings, opts ...fx.Option) (*cli.Session, error) {
	a, err := New(ctx, s, opts...)
	if err != nil {
		return nil, err
	}
	return &cli.Session{
		Service:  a.service,
		Registry: a.registry, Provider: a.provider, Repository: a.repository, Checkpoints: a.checkpoints, Sweep: a.sweep,
		Migrate: a.repository.Migrate, CheckSchema: a.repository.CheckSchema,
		Work:     a.Work,
		Launcher: a.launcher, Close: a.Close,
	}, nil
}

// LoadSettings reads the settings as the command does: the environment
// (SURFIN_*, DATABASE_URL) over surfin.yaml in the working directory over the
// defaults.
func LoadSettings() (Settings, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Settings{}, err
	}
	return settings.Load(settings.Source{Dir: dir, Environ: os.Environ()})
}

func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// version is the module's version as the Go command recorded it, "devel" in a
// checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// rootCause is the error of a constructor without fx's account of the way to it.
func rootCause(err error) error { return dig.RootCause(err) }
