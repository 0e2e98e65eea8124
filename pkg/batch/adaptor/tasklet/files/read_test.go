package filetask

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func listedBy(t *testing.T, parts bool, paths ...string) stepRecords {
	t.Helper()
	whole := core.StepExecution{ID: 1, First: 1, Name: "load", Status: core.StatusCompleted, Context: core.NewExecutionContext()}
	records := []core.StepExecution{whole}
	var list []filestream.Listed
	for i, path := range paths {
		info, err := os.Stat(path)
		require.NoError(t, err)
		list = append(list, filestream.Listed{Path: path, Mark: place.DiskInfo(path, info).Mark()})
		part := core.StepExecution{ID: core.StepExecutionID(2 + i), Name: "load:" + filepath.Base(path), Status: core.StatusCompleted, Context: core.NewExecutionContext()}
		require.NoError(t, part.Context.Put(filestream.PartPathKey, path))
		require.NoError(t, part.Context.Put(filestream.PartMarkKey, place.DiskInfo(path, info).Mark()))
		records = append(records, part)
	}
	if !parts {
		text, err := filestream.EncodeList(list)
		require.NoError(t, err)
		require.NoError(t, whole.Context.Put(filestream.ListKey, text))
		records = records[:1]
	}
	return func(_ context.Context, step string) ([]core.StepExecution, error) {
		if step != "load" {
			return nil, nil
		}
		return records, nil
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
}

// Rule TL3a.
func TestOnlyFilesThatAStepHasReadAreDealtWithWhereverItDies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config func(in, out string) config
		far    bool
	}{
		"move":          {config: func(in, out string) config { return config{Move: in + "/*.csv", To: out + "/new"} }},
		"move far":      {config: func(in, out string) config { return config{Move: in + "/*.csv", To: out + "/new"} }, far: true},
		"move over":     {config: func(in, out string) config { return config{Move: in + "/*.csv", To: out, Overwrite: true} }},
		"copy":          {config: func(in, out string) config { return config{Copy: in + "/*.csv", To: out + "/new"} }},
		"delete":        {config: func(in, _ string) config { return config{Delete: in + "/*.csv"} }},
		"gzip in place": {config: func(in, _ string) config { return config{Gzip: in + "/*.csv"} }},
	} {
		for parts, form := range map[bool]string{true: "parts", false: "list"} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				begin := func() (dir string, cfg config, records stepRecords) {
					dir = t.TempDir()
					in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
					write(t, in+"/a.csv", "first")
					write(t, in+"/b.csv", strings.Repeat("second", 1000))
					write(t, in+"/c.txt", "read, and not in the pattern")
					write(t, out+"/a.csv", "was there")
					records = listedBy(t, parts, in+"/a.csv", in+"/b.csv", in+"/c.txt")
					write(t, in+"/late.csv", "came later")
					cfg = c.config(in, out)
					cfg.Of = "load"
					return dir, cfg, records
				}
				dir, cfg, records := begin()
				undisturbed := &mortal{left: 1 << 30, far: c.far}
				_, err := attemptOf(t, cfg, records, undisturbed, nil)
				require.NoError(t, err)
				want, changes := tree(t, dir), 1<<30-undisturbed.left
				require.Equal(t, "came later", want["in/late.csv"])
				require.Equal(t, "read, and not in the pattern", want["in/c.txt"])
				if name != "copy" {
					require.NotContains(t, want, "in/a.csv")
				}
				for after := range changes {
					t.Run(strconv.Itoa(after), func(t *testing.T) {
						dir, cfg, records := begin()
						stored, err := attemptOf(t, cfg, records, &mortal{left: after, far: c.far}, nil)
						require.ErrorIs(t, err, errDead)
						write(t, filepath.Join(dir, "in", "later.csv"), "came while it was dead")
						_, err = attemptOf(t, cfg, records, &mortal{left: -1, far: c.far}, stored)
						require.NoError(t, err)
						got := tree(t, dir)
						require.Equal(t, "came while it was dead", got["in/later.csv"])
						delete(got, "in/later.csv")
						require.Equal(t, want, got)
					})
				}
			})
		}
	}
}

func TestAFileThatComesUnderTheNameOfOneThatWasMovedStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	write(t, in+"/a.csv", "first")
	write(t, in+"/b.csv", "second")
	records := listedBy(t, true, in+"/a.csv", in+"/b.csv")
	cfg := config{Move: in + "/*.csv", To: out, Of: "load"}
	removals := 0
	m := &mortal{left: 1 << 30}
	dies := func(call, name string, change func() error) error {
		if m.dead {
			return errDead
		}
		err := change()
		if call == "remove" {
			removals++
			m.dead = removals == 1
		}
		return err
	}
	task, err := newTasklet(cfg, records)
	require.NoError(t, err)
	task.around = dies
	known := core.NewExecutionContext()
	c := &core.StepContribution{Context: known, Step: core.StepExecution{ID: 7, First: 7}}
	require.ErrorIs(t, task.Execute(t.Context(), c), errDead)
	write(t, in+"/a.csv", "another first")

	task, err = newTasklet(cfg, records)
	require.NoError(t, err)
	require.NoError(t, task.Execute(t.Context(), c))
	require.Equal(t, map[string]string{"in/a.csv": "another first", "out/a.csv": "first", "out/b.csv": "second"}, tree(t, dir))
}

func TestAFileThatHasChangedOrGoneSinceItWasReadIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")
	write(t, a, "first")
	write(t, b, "second")
	records := listedBy(t, false, a, b)
	cfg := config{Move: dir + "/*.csv", To: dir + "/done", Of: "load"}
	later := time.Now().Add(time.Minute)
	require.NoError(t, os.Chtimes(b, later, later))
	_, err := attemptOf(t, cfg, records, &mortal{left: -1}, nil)
	require.ErrorContains(t, err, "b.csv has changed since step load listed it")
	require.NoError(t, os.Remove(b))
	_, err = attemptOf(t, cfg, records, &mortal{left: -1}, nil)
	require.ErrorContains(t, err, "b.csv, which step load has read, does not exist any more")
	require.Equal(t, map[string]string{"a.csv": "first"}, tree(t, dir))
	cfg.Missing = "ignore"
	_, err = attemptOf(t, cfg, records, &mortal{left: -1}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"done/a.csv": "first"}, tree(t, dir))

	cfg.Of = "other"
	_, err = attemptOf(t, cfg, records, &mortal{left: -1}, nil)
	require.ErrorContains(t, err, "of: step other has not run in this instance")
	_, err = attempt(t, cfg, &mortal{left: -1}, nil)
	require.ErrorContains(t, err, "there is no history")
}
