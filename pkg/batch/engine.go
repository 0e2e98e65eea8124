package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/logfolder"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type engines struct {
	fx.In
	List     []engine.Maker `group:"surfin.engines"`
	Deciders []deciderName  `group:"surfin.decidernames"`
}

func newTaskRepository(h history, s Settings, o observing, v *secret.Vault) (*tasks.Repository, error) {
	options := tasks.Options{Observer: o.Observer, Mask: v.Values}
	if s.Tasks.Logs != "" {
		options.Logs = logfolder.New(s.Tasks.Logs)
	}
	return tasks.New(h.Database, cmp.Or(s.Repository.Prefix, repository.DefaultPrefix), options)
}

func newEngine(h history, t *tasks.Repository, s Settings, built engines) (engine.Engine, error) {
	if assembly.IsLocal(s) {
		parts := repository.New(h.Database, repository.Options{Prefix: s.Repository.Prefix}) // only read
		deciders := []string{runtime.DefaultDecider}
		for _, name := range built.Deciders {
			deciders = append(deciders, string(name))
		}
		return local.New(local.Config{Database: h.Database, Source: runtime.Waiting{Tasks: t, Deciders: deciders, Parts: parts, Places: places(t, parts)}, Log: slog.Default()})
	}
	names := []string{settings.EngineLocal}
	for _, m := range built.List {
		names = append(names, m.Name)
		if m.Name == s.Engine.Name {
			made, err := m.New(h.Database)
			return made, engineError(s, err)
		}
	}
	return nil, engineError(s, fmt.Errorf("this program was built without the engine %s (it has: %s): add its Module to the options of batch.New or cli.Main, or use the engine local",
		s.Engine.Name, strings.Join(names, ", ")))
}

func engineError(s Settings, err error) error {
	if err == nil || s.Engine.Origin == "" {
		return err
	}
	return &settings.Error{Where: s.Engine.Origin, Err: err}
}

type schemas []operator.Schema

func newSchemas(r *repository.Repository, e engine.Engine) schemas {
	all := schemas{r}
	if own, ok := e.(engine.Schema); ok {
		all = append(all, own)
	}
	return all
}

func (all schemas) Migrate(ctx context.Context) error {
	for _, s := range all {
		err := s.CheckSchema(ctx)
		if errors.Is(err, core.ErrSchemaMissing) {
			err = s.Migrate(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (all schemas) CheckSchema(ctx context.Context) error {
	for _, s := range all {
		if err := s.CheckSchema(ctx); err != nil {
			return err
		}
	}
	return nil
}
