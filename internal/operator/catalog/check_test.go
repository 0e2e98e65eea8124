package catalog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestEachUnchangedFileIsReadAgainInItsTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("job: "+name+"\nflow:\n- {step: s, tasklet: noop}\n"), 0o600))
	}
	components, err := registry.New([]registry.Component{{Kind: registry.KindTasklet, Name: "noop"}}, nil, nil)
	require.NoError(t, err)
	c, err := New(components, nil, dir)
	require.NoError(t, err)
	for name, old := range map[string]time.Duration{"a": recheck + time.Minute, "b": recheck + time.Hour, "c": 0} {
		known := c.checks.jobs[name]
		known.at = time.Now().Add(-old)
		c.checks.jobs[name] = known
	}
	read := func() (names []string) {
		before := map[string]time.Time{}
		for name, known := range c.checks.jobs {
			before[name] = known.at
		}
		require.Len(t, c.Check(c.Names()), 3)
		for _, name := range c.Names() {
			if c.checks.jobs[name].at != before[name] {
				names = append(names, name)
			}
		}
		return names
	}
	require.Equal(t, []string{"b"}, read())
	require.Equal(t, []string{"a"}, read())
	require.Empty(t, read())
}
