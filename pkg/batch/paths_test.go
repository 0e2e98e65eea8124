package batch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestAPathOfTheGoAPIBeginsAtTheJobFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs", "look.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(`job: look
parameters:
  input: {type: path}
flow:
- step: look
  tasklet: look
`), 0o600))
	seen := make(chan core.Parameter, 10)
	look := func() batch.TaskletFunc {
		return func(_ context.Context, c *batch.StepContribution) error {
			p, _ := c.Params.Get("input")
			seen <- p
			return nil
		}
	}
	ctx := t.Context()
	s, err := settings.Load(settings.Source{Dir: dir, Flags: []settings.Flag{{Key: "databases.default.url", Value: testdb.SQLite(t), Name: "test"}}})
	require.NoError(t, err)
	app, err := batch.New(ctx, s, batch.Tasklet("look", look), batch.Log(nil))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(ctx))) })
	for _, c := range []struct {
		input, folder, value, path string
	}{
		{"./in.csv", "", "in.csv", filepath.Join(dir, "jobs", "in.csv")},
		{"in.csv", dir, filepath.Join(dir, "in.csv"), filepath.Join(dir, "in.csv")},
	} {
		exec, err := app.Run(ctx, batch.RunRequest{File: file, Params: map[string]string{"input": c.input}, Folder: c.folder})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, core.Parameter{Name: "input", Type: core.TypePath, Identifying: true, Value: c.value, Path: c.path}, <-seen)
	}
}
