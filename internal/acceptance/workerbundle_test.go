package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const bundleChild = `
job: below
flow:
- step: below
  partition: {by: {files: "in/*.csv"}, remote: true}
  chunk:
    size: 10
    reader: {csv: {path: "${part.path}", item: {id: int, name: string, amount: float}}}
    processor: {map: {source: part.name}}
    writer: {table: target}
- job: deep
  file: ../deep.yaml
`

const bundleDeep = `
job: deep
flow:
- step: note
  tasklet: {sql: "insert into target (id, name, amount, source) values (1, 'deep', 1, 'deep')"}
`

func TestAWorkerReadsNoJobFile(t *testing.T) {
	t.Parallel()
	const rows = 100
	for i, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
	}{
		{"deleted", func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Remove(path))
		}},
		{"changed", func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.WriteFile(path, []byte("job: below\nflow:\n- {step: below, tasklet: {shell: \"exit 1\"}}\n"), 0o600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTurn(t, i, func(t *testing.T, url string) {
				t.Parallel()
				s := newRemoteScene(t, url, rows, 10)
				s.write("parts.yaml", strings.TrimRight(s.read("parts.yaml"), "\n")+"\n- {job: below, file: jobs/below.yaml}\n")
				require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "jobs/in"), 0o755))
				s.write("jobs/below.yaml", bundleChild)
				s.write("deep.yaml", bundleDeep)
				s.write("jobs/in/below.csv", partText(0, rows))
				db, r := s.open()
				manager := s.start("run", "parts.yaml", "into=target")
				require.Eventually(t, func() bool {
					exec, err := r.Execution(t.Context(), 1)
					return err == nil && exec.Status == core.StatusParked
				}, 30*time.Second, 10*time.Millisecond)
				manager.signal(syscall.SIGKILL)
				manager.wait()
				for _, file := range []string{"parts.yaml", "jobs/below.yaml", "deep.yaml"} {
					c.damage(t, filepath.Join(s.dir, file))
				}
				s.worker()
				require.Eventually(t, func() bool {
					exec, err := r.Execution(t.Context(), 1)
					return err == nil && exec.Status.IsOver()
				}, 60*time.Second, 50*time.Millisecond)
				code, out := s.run("show", "1")
				require.Zero(t, code, out)
				exec, err := r.Execution(t.Context(), 1)
				require.NoError(t, err)
				require.Equal(t, core.StatusCompleted, exec.Status, "%s\n%s", exec.Error, out)
				require.Equal(t, []string{"100", "1"}, s.lines(db, "select cast(count(*) as text) from target where source in ('below.csv', 'deep') group by source order by source"))

				code, out = s.run("show", "1", "--definition")
				require.Zero(t, code, out)
				require.Contains(t, out, "--- # parts.yaml\n")
				require.Contains(t, out, "--- # deep.yaml\n"+bundleDeep)
				require.Contains(t, out, "--- # jobs/below.yaml\n"+bundleChild)
				code, out = s.run("show", "1", "--definition", "--file", "deep.yaml")
				require.Zero(t, code, out)
				require.Contains(t, out, bundleDeep)
				require.NotContains(t, out, "below")
				code, out = s.run("show", "1", "--definition", "--file", "dep.yaml")
				require.Equal(t, 2, code, out)
				require.Contains(t, out, "the definition has no such file; it has parts.yaml, deep.yaml, jobs/below.yaml")
			})
		})
	}
}

func TestAWorkerLeavesPartsWhoseDefinitionIsNotTheOneOfTheHash(t *testing.T) {
	t.Parallel()
	const rows = 20
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		s.write("parts.yaml", strings.TrimRight(s.read("parts.yaml"), "\n")+"\n- {job: deep, file: deep.yaml}\n")
		s.write("deep.yaml", "job: deep\nflow:\n- {step: note, tasklet: {sql: \"create table deep (id bigint)\"}}\n")
		db, r := s.open()
		manager := s.start("run", "parts.yaml", "into=target")
		require.Eventually(t, func() bool {
			exec, err := r.Execution(t.Context(), 1)
			return err == nil && exec.Status == core.StatusParked
		}, 30*time.Second, 10*time.Millisecond)
		replace := func(old, with string) {
			_, err := db.Conn().ExecContext(t.Context(), "update surfin_job_execution set definition_files = replace(definition_files, '"+old+"', '"+with+"')")
			require.NoError(t, err)
		}
		replace("table deep", "table damp")
		worker := s.worker()
		require.Eventually(t, func() bool { return strings.Contains(worker.out.String(), "part refused") }, 30*time.Second, 10*time.Millisecond)
		worker.signal(syscall.SIGTERM)
		code, out := worker.wait()
		require.Zero(t, code, out)
		require.Contains(t, out, "the stored definition has hash")
		require.LessOrEqual(t, strings.Count(out, "part refused"), 2, "each of its slots takes one, and no other: %s", out)
		for _, part := range s.partitions(r) {
			require.Equal(t, core.StatusStarting, part.Status, part.Name)
		}
		replace("table damp", "table deep")
		s.worker()
		code, out = manager.wait()
		require.Zero(t, code, out)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}
