package jobfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	jobstep "github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// remoteBench returns an engine, a registry, the same registry with a tasklet idle that works only in the
// process that runs the job, and write, which writes a file into a folder that has leaf.yaml.
func remoteBench(t *testing.T) (engine *testengine.Engine, reg, local *registry.Registry, write func(name, text string) string) {
	t.Helper()
	reg = (&bench{}).registry(t)
	local = reg.Map(func(c registry.Component) registry.Component {
		c.Local = c.Name == "idle"
		return c
	})
	folder := t.TempDir()
	write = func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("leaf.yaml", "job: leaf\nflow:\n- {step: a, tasklet: idle}\n")
	return testengine.New(t, testdb.SQLite(t)), reg, local, write
}

func TestWhoRunsAChildJob(t *testing.T) {
	t.Parallel()
	engine, reg, local, write := remoteBench(t)
	write("child.yaml", "job: child\nflow:\n- {job: leaf, file: leaf.yaml}\n")
	parent := func(remote string) string {
		return write("parent.yaml", "job: parent\nflow:\n- job: call\n  file: child.yaml\n"+remote)
	}
	for _, c := range []struct {
		remote             string
		local, distributed bool
		want               bool
	}{
		{remote: "", distributed: true, want: false},
		{remote: "  remote: false\n", distributed: true, want: false},
		{remote: "  remote: true\n", want: true},
		{remote: "  remote: auto\n", want: false},
		{remote: "  remote: auto\n", distributed: true, want: true},
		{remote: "  remote: auto\n", distributed: true, local: true, want: false},
	} {
		use := reg
		if c.local {
			use = local
		}
		f, err := jobfile.Load(parent(c.remote), use)
		require.NoError(t, err, c)
		j, err := f.Compile(jobfile.Deps{Provider: engine.Provider, Registry: use, Distributed: c.distributed})
		require.NoError(t, err, c)
		require.Equal(t, c.want, j.Flow.Steps()[0].(*jobstep.JobStep).OnWorkers(), c)
	}

	for text, said := range map[string]string{
		"  remote: true\n":  "remote: job child has the tasklet idle, which works only in the process that runs the job",
		"  remote: maybe\n": "auto, true, false",
	} {
		_, err := jobfile.Load(parent(text), local)
		var problems jobfile.Problems
		require.ErrorAs(t, err, &problems)
		require.Len(t, problems, 1)
		require.Equal(t, [2]int{5, 11}, [2]int{problems[0].Line, problems[0].Col})
		require.Contains(t, problems.Error(), said)
	}
}

func TestWhoRunsTheBranchesOfASplit(t *testing.T) {
	t.Parallel()
	engine, reg, local, write := remoteBench(t)
	write("child.yaml", "job: child\nflow:\n- {job: leaf, file: leaf.yaml, remote: true}\n")
	parent := func(remote, other string) string {
		return write("parent.yaml", "job: parent\nflow:\n- split: both\n  "+remote+"\n  branches:\n  - [{step: a, tasklet: idle}]\n  - ["+other+"]\n")
	}
	const step, call = "{step: b, tasklet: idle}", "{job: call, file: leaf.yaml, remote: "
	for _, c := range []struct {
		remote, other      string
		local, distributed bool
		want, child        bool
	}{
		{remote: "when: \"true\"", other: step, distributed: true},
		{remote: "remote: false", other: call + "auto}", distributed: true, child: true},
		{remote: "remote: true", other: step, want: true},
		{remote: "remote: auto", other: step},
		{remote: "remote: auto", other: step, distributed: true, want: true},
		{remote: "remote: auto", other: step, distributed: true, local: true},
		{remote: "remote: auto", other: call + "auto}", distributed: true, want: true},
		{remote: "remote: auto", other: call + "true}", distributed: true, child: true},
	} {
		use := reg
		if c.local {
			use = local
		}
		f, err := jobfile.Load(parent(c.remote, c.other), use)
		require.NoError(t, err, c)
		j, err := f.Compile(jobfile.Deps{Provider: engine.Provider, Registry: use, Distributed: c.distributed})
		require.NoError(t, err, c)
		split := j.Flow.Elements[0].(*model.SplitElement)
		require.Equal(t, c.want, split.OnWorkers, c)
		if called, is := split.Branches[1].Steps()[0].(*jobstep.JobStep); is {
			require.Equal(t, c.child, called.OnWorkers(), c)
		}
	}

	for _, c := range []struct {
		remote, other, said string
		use                 *registry.Registry
		at                  int
	}{
		{"remote: true", step, "remote: split both has the tasklet idle, which works only in the process that runs the job", local, 11},
		{"remote: true", call + "true}", "remote: split both has call in line 7, which runs on workers: a branch on workers cannot wait for workers", reg, 11},
		{"remote: true", "{job: call, file: child.yaml}", "remote: split both has call in line 7, whose element leaf waits for workers", reg, 11},
		{"remote: true", "{split: inner, remote: true, branches: [[" + step + "]]}", "remote: split both has inner in line 7, whose branches run on workers", reg, 11},
		{"remote: maybe", step, "auto, true, false", reg, 11},
		{"parallel: 2\n  remote: true", step, "parallel: the branches of split both run on workers, whose slots limit how many run at once", reg, 13},
	} {
		_, err := jobfile.Load(parent(c.remote, c.other), c.use)
		var problems jobfile.Problems
		require.ErrorAs(t, err, &problems, c.said)
		require.Len(t, problems, 1, problems.Error())
		require.Equal(t, [2]int{4, c.at}, [2]int{problems[0].Line, problems[0].Col})
		require.Contains(t, problems.Error(), c.said)
	}
}
