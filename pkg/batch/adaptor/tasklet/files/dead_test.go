//test:plain

package filetask

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

var errDead = errors.New("the process is dead")

// mortal lets a number of changes happen, and nothing after them: as if the process had died.
type mortal struct {
	left int // changes before the death; below 0 means that it does not die
	dead bool
	far  bool
}

func (m *mortal) around(call, name string, change func() error) error {
	if m.dead || m.left == 0 {
		m.dead = true
		return errDead
	}
	m.left--
	if m.far && (call == "link" || call == "rename") && !strings.Contains(name, ".surfin-") {
		return &os.LinkError{Op: call, Old: name, Err: syscall.EXDEV}
	}
	return change()
}

func attempt(t *testing.T, cfg config, m *mortal, stored []byte) (kept []byte, err error) {
	t.Helper()
	return attemptOf(t, cfg, nil, m, stored)
}

func attemptOf(t *testing.T, cfg config, records stepRecords, m *mortal, stored []byte) (kept []byte, err error) {
	t.Helper()
	task, err := newTasklet(cfg, records)
	require.NoError(t, err)
	task.around = m.around
	known := core.NewExecutionContext()
	if stored != nil {
		require.NoError(t, known.UnmarshalJSON(stored))
	}
	c := &core.StepContribution{Context: known, Step: core.StepExecution{ID: 7, First: 7}}
	c.Save = func(context.Context) error {
		return m.around("save", "", func() (err error) {
			stored, err = known.MarshalJSON()
			return err
		})
	}
	err = task.Execute(t.Context(), c)
	return stored, err
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if strings.HasSuffix(path, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(text))
			require.NoError(t, err)
			var b bytes.Buffer
			_, err = b.ReadFrom(z)
			require.NoError(t, err)
			text = b.Bytes()
		}
		rel, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return files
}

// Rule TL3.
func TestAStepThatDiesAnywhereIsRunAgainAndEndsRight(t *testing.T) {
	t.Parallel()
	zipped := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(text))
		require.NoError(t, errors.Join(err, z.Close()))
		return b.String()
	}
	for name, c := range map[string]struct {
		config func(in, out string) config
		far    bool
	}{
		"move":             {config: func(in, out string) config { return config{Move: in + "/*.csv", To: out + "/new/er"} }},
		"move over":        {config: func(in, out string) config { return config{Move: in + "/*.csv", To: out, Overwrite: true} }},
		"move far":         {config: func(in, out string) config { return config{Move: in + "/*.csv", To: out + "/new"} }, far: true},
		"move one":         {config: func(in, out string) config { return config{Move: in + "/a.csv", As: out + "/b.csv"} }},
		"move one far":     {config: func(in, out string) config { return config{Move: in + "/a.csv", As: out + "/b.csv"} }, far: true},
		"copy":             {config: func(in, out string) config { return config{Copy: in + "/*.csv", To: out + "/new"} }},
		"copy over":        {config: func(in, out string) config { return config{Copy: in + "/*.csv", To: out, Overwrite: true} }},
		"delete":           {config: func(in, _ string) config { return config{Delete: in + "/*.csv"} }},
		"delete one":       {config: func(in, _ string) config { return config{Delete: in + "/a.csv"} }},
		"gzip in place":    {config: func(in, _ string) config { return config{Gzip: in + "/*"} }},
		"gzip and keep":    {config: func(in, out string) config { return config{Gzip: in + "/*.csv", To: out, Keep: true} }},
		"gunzip in place":  {config: func(in, _ string) config { return config{Gunzip: in + "/*"} }},
		"gunzip elsewhere": {config: func(in, out string) config { return config{Gunzip: in + "/z.txt.gz", As: out + "/z"} }},
		"checksums":        {config: func(in, out string) config { return config{Checksum: in + "/*.csv", As: out + "/sums"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := func() (dir string, cfg config) {
				dir = t.TempDir()
				in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
				for path, text := range map[string]string{
					in + "/a.csv": "first", in + "/b.csv": strings.Repeat("second", 1000), in + "/z.txt.gz": zipped("third"), out + "/a.csv": "was there",
				} {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
					require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
				}
				return dir, c.config(in, out)
			}
			dir, cfg := begin()
			undisturbed := &mortal{left: 1 << 30, far: c.far}
			_, err := attempt(t, cfg, undisturbed, nil)
			require.NoError(t, err)
			want, changes := tree(t, dir), 1<<30-undisturbed.left
			require.Greater(t, changes, 1)
			for after := range changes {
				t.Run(strconv.Itoa(after), func(t *testing.T) {
					dir, cfg := begin()
					stored, err := attempt(t, cfg, &mortal{left: after, far: c.far}, nil)
					require.ErrorIs(t, err, errDead)
					_, err = attempt(t, cfg, &mortal{left: -1, far: c.far}, stored)
					require.NoError(t, err)
					require.Equal(t, want, tree(t, dir))
				})
			}
		})
	}
}
