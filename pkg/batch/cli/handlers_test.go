//test:plain

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type needed struct{}

type square struct{}

func (square) Execute(context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil }

// Rule TS6.
func TestValidateLooksForTheHandlersOfTasks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const job = "job: squares\nflow:\n- step: square\n  tasks:\n    handler: %\n    items: [1]\n"
	right := write("right.yaml", strings.ReplaceAll(job, "%", "square"))
	off := write("off.yaml", strings.ReplaceAll(job, "%", "shell"))
	write("child.yaml", strings.ReplaceAll(job, "%", "sqare"))
	parent := write("parent.yaml", "job: parent\nflow:\n- job: squares\n  file: child.yaml\n")
	handler := batch.Handler("square", func(*needed) square { return square{} })
	app, err := cli.NewCommand(handler, fx.Provide(func() *needed { panic("built only to run") }))
	require.NoError(t, err)
	surfin := func(want int, args ...string) string {
		var out, errs strings.Builder
		code := command.Main(t.Context(), app, args, strings.NewReader(""), &out, &errs)
		require.Equal(t, want, code, "%s%s", out.String(), errs.String())
		return out.String() + errs.String()
	}
	surfin(0, "validate", right)
	refused := surfin(2, "validate", parent, off)
	require.Contains(t, refused, "child.yaml:5:14: there is no handler sqare of tasks in this application")
	require.Contains(t, refused, "did you mean square? allowed: http_request, job, square")
	require.Contains(t, refused, "off.yaml:5:14: the handler shell of tasks is switched off")
	require.Contains(t, refused, "SURFIN_TASKS_SHELL=true")
	t.Setenv("SURFIN_TASKS_SHELL", "true")
	surfin(0, "validate", off)

	t.Setenv("SURFIN_ENGINE", "river")
	t.Setenv("DATABASE_URL", "postgres://nobody@192.0.2.1/none")
	noted := surfin(0, "validate", parent)
	require.Contains(t, noted, "parent.yaml: ok")
	require.Contains(t, noted, "note: "+filepath.Join(dir, "child.yaml")+":5:14: there is no handler sqare of tasks in this application")
	require.Contains(t, noted, "With the engine river a worker of another program may have it: that is not known without a database.")
}

func TestValidateFindsAMissingDependency(t *testing.T) {
	t.Parallel()
	app, err := cli.NewCommand(batch.Handler("square", func(*needed) square { return square{} }))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(path, []byte("job: a\nflow: [{step: b, tasklet: {shell: 'true'}}]\n"), 0o600))
	var out, errs strings.Builder
	require.Equal(t, 2, command.Main(t.Context(), app, []string{"validate", path}, strings.NewReader(""), &out, &errs))
	require.Contains(t, errs.String(), `handler of tasks "square" needs a *cli_test.needed: add an fx.Provide of a function that returns one`)
}
