package assembly

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/handler/httprequest"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/handler/shell"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// HandlerType is a task type that has a handler.
type HandlerType string

// HandlerTypes are the types of tasks that have a handler.
type HandlerTypes = jobfile.HandlerTypes

type handlerTypes struct {
	*runtime.Catalog
	closed bool
}

func (h handlerTypes) Handlers() (known []string, closed bool) { return h.Types(), h.closed }

// TaskHandlers returns the task types executed with these settings and opts, to check job files. It builds no
// dependencies and opens no database.
func TaskHandlers(s settings.Settings, opts ...fx.Option) (HandlerTypes, error) {
	var described struct {
		fx.In
		Types []HandlerType `group:"surfin.handlertypes"`
	}
	app := fx.New(fx.NopLogger, fx.Options(opts...), fx.Populate(&described))
	if err := app.Err(); err != nil {
		return nil, err
	}
	handlers := StockHandlers(nil, nil, s, nil)
	for _, t := range described.Types {
		handlers = append(handlers, runtime.NamedHandler{Type: string(t), New: func() (task.Handler, error) {
			return nil, fmt.Errorf("the handler of tasks of type %q is only described", t)
		}})
	}
	catalog, err := runtime.NewCatalog(handlers, nil)
	return handlerTypes{catalog, IsLocal(s)}, err
}

// IsLocal reports whether the program itself is the engine.
func IsLocal(s settings.Settings) bool {
	return s.Engine.Name == "" || s.Engine.Name == settings.EngineLocal
}

func secretsOf(allowed settings.Tasks, v *secret.Vault) func(ctx context.Context, name, host string) (string, error) {
	return func(ctx context.Context, name, host string) (string, error) {
		if !slices.Contains(allowed.Secrets, settings.TaskSecret{Name: name, Host: strings.ToLower(host)}) {
			return "", fmt.Errorf("${secret.%[1]s}: tasks must not send this secret to %[2]s: add %[1]s@%[2]s to tasks.secrets of the workers", name, host)
		}
		value, err := v.Lookup(ctx, name)
		if err != nil {
			return "", fmt.Errorf("${secret.%s}: %w", name, err)
		}
		return value, nil
	}
}

// StockHandlers returns every application's handlers. shell is off by default: its submitter runs any command.
func StockHandlers(jobs *operator.Service, stored operator.SubmittedTasks, s settings.Settings, v *secret.Vault) []runtime.NamedHandler {
	off := "tasks.shell: true (SURFIN_TASKS_SHELL=true) switches it on"
	if s.Tasks.Shell {
		off = ""
	}
	return []runtime.NamedHandler{
		{Type: task.TypeJob, New: func() (task.Handler, error) { return operator.NewJobHandler(jobs, stored), nil }},
		{Type: shell.Type, New: func() (task.Handler, error) {
			return shell.New(func() []string { return v.Environ(os.Environ()) }), nil
		}, Off: off},
		{Type: httprequest.Type, New: func() (task.Handler, error) { return httprequest.New(nil, secretsOf(s.Tasks, v)), nil }},
	}
}
