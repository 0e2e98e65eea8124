package jobfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	martMain = `job: mart
include: [common/lib.yaml]
defaults: {retry: 2}
parameters: {day: {type: date, default: 2026-11-20}}
x-note: {a: 1}
flow:
- for_each:
  - {table: customer}
  - {table: account, columns: {n: int, iban: {type: string, from: I}}}
  use: copy
  parallel: 2
- {use: tell, with: {text: "day ${params.day}"}}
- use: tell
  as: last
  with: {text: "NO", name: end}
  when: steps.load_customer.read > 0
  next: {FAILED: fail}
finally:
- {use: tell, with: {text: over, name: bye}}
`
	martLib = `include: types.yaml
templates:
  copy:
    with: {table: string, columns: {type: map, default: {n: int}}, upto: {type: int, default: 3}}
    steps:
    - step: load_${with.table}
      chunk:
        reader: {count: {to: "${with.upto * 2}", item: "${with.columns}"}}
        processor: [keep: "item.n < ${with.upto}"]
        writer: {sink: "${with.table}"}
    - use: tell
      with: {name: "${with.table}", text: "'${upper(with.table)}' at $${x}"}
  tell:
    with: {name: {type: string, default: all}, text: string}
    steps:
    - step: tell_${with.name}
      tasklet: {note: {text: "${with.text}", args: ["${'<${with.name}>' + job.name}"]}}
defaults: {retry: {errors: [deadlock]}, skip: 3}
`
	martTypes = "types: {pair: {n: int, text: string null}}\n"
)

func martTexts() map[string]string {
	return map[string]string{"job.yaml": martMain, "common/lib.yaml": martLib, "common/types.yaml": martTypes}
}

func martDir(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "common"), 0o755))
	for name, text := range martTexts() {
		if other, ok := change[name]; ok {
			text = other
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestAnExpandedJobMeansTheSame(t *testing.T) {
	t.Parallel()
	file, err := jobfile.LoadFS(inMemory(martTexts()), "job.yaml", described(t))
	require.NoError(t, err)
	require.Equal(t, []string{"load_customer", "tell_customer", "load_account", "tell_account", "tell_all", "tell_end", "tell_bye"}, file.Steps())
	text, err := file.Expanded()
	require.NoError(t, err)
	golden := "testdata/expanded.yaml"
	if *update {
		require.NoError(t, os.WriteFile(golden, text, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))

	again, err := jobfile.Parse("job.yaml", text, described(t))
	require.NoError(t, err)
	require.Equal(t, file.Steps(), again.Steps())
	twice, err := again.Expanded()
	require.NoError(t, err)
	require.Equal(t, withoutComments(string(text)), string(twice))
}

func withoutComments(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }), "\n")
}

func TestEveryValidJobIsItsOwnExpansion(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/valid/*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		file, err := jobfile.Load(path, described(t))
		require.NoError(t, err)
		text, err := file.Expanded()
		require.NoError(t, err)
		again, err := jobfile.Parse(path, text, described(t))
		require.NoError(t, err, string(text))
		require.Equal(t, file.Parameters(), again.Parameters())
		require.Empty(t, jobfile.Compare(file, again, core.Parameters{}, nil), path)
	}
}

func TestAJobOfTemplatesRuns(t *testing.T) {
	t.Parallel()
	e, b := testengine.New(t, testdb.SQLite(t)), &bench{}
	file, err := jobfile.LoadFS(inMemory(martTexts()), "job.yaml", described(t))
	require.NoError(t, err)
	compiled, err := file.Compile(jobfile.Deps{Provider: e.Provider, Registry: b.registry(t)})
	require.NoError(t, err)
	split, is := compiled.Flow.Elements[0].(*model.SplitElement)
	require.True(t, is)
	require.Equal(t, 2, split.Workers)
	params, err := job.ValidateParameters(file.Parameters(), nil)
	require.NoError(t, err)
	exec, err := e.Launcher.Run(t.Context(), compiled, params, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	slices.Sort(b.rows)
	require.Equal(t, []string{"n=1 ", "n=1 iban=n ", "n=2 ", "n=2 iban=n "}, b.rows)
	var notes []string
	for _, n := range b.notes {
		notes = append(notes, n.Text+" "+n.Args[0])
	}
	slices.Sort(notes)
	require.Equal(t, []string{"'ACCOUNT' at ${x} <account>mart", "'CUSTOMER' at ${x} <customer>mart", "NO <end>mart", "day 2026-11-20 <all>mart", "over <bye>mart"}, notes)
}

// Rule F4.
func TestADefinitionHasTheIncludedFiles(t *testing.T) {
	t.Parallel()
	dir := martDir(t, nil)
	file, err := jobfile.Load(filepath.Join(dir, "job.yaml"), described(t))
	require.NoError(t, err)
	d := file.Definition()
	require.Equal(t, []core.DefinitionFile{
		{Name: "common/lib.yaml", Text: martLib, Path: filepath.Join(dir, "common/lib.yaml")},
		{Name: "common/types.yaml", Text: martTypes, Path: filepath.Join(dir, "common/types.yaml")},
	}, d.Files)
	require.NoError(t, os.RemoveAll(dir))
	again, err := jobfile.Stored(d, "job.yaml").Load(described(t))
	require.NoError(t, err)
	require.Equal(t, d, again.Definition())
	require.Equal(t, file.Steps(), again.Steps())

	_, err = jobfile.Stored(ports.NewDefinition(d.Text, d.Path, d.Files[:1]), "job.yaml").Load(described(t))
	require.ErrorContains(t, err, "common/lib.yaml:1:10: include: common/types.yaml is not stored with the execution")
}

func TestAChangeOfAnIncludedFileIsOneOfItsSteps(t *testing.T) {
	t.Parallel()
	load := func(change map[string]string) *jobfile.File {
		file, err := jobfile.Load(filepath.Join(martDir(t, change), "job.yaml"), described(t))
		require.NoError(t, err)
		return file
	}
	before := load(nil)
	require.NotEqual(t, before.Definition().Hash, load(map[string]string{"common/lib.yaml": martLib + "# more\n"}).Definition().Hash)
	require.Empty(t, jobfile.Compare(before, load(map[string]string{"common/lib.yaml": martLib + "# more\n"}), core.Parameters{}, nil))

	told := strings.Replace(martLib, `text: "${with.text}"`, `text: "! ${with.text}"`, 1)
	var steps []string
	for _, c := range jobfile.Compare(before, load(map[string]string{"common/lib.yaml": told}), core.Parameters{}, nil) {
		steps = append(steps, c.String())
	}
	require.Equal(t, []string{"step tell_customer is different", "step tell_account is different", "step tell_all is different", "step tell_end is different"}, steps)

	// Another use does not rename the existing steps.
	more := strings.Replace(martMain, "  - {table: customer}\n", "  - {table: booking}\n  - {table: customer}\n", 1)
	changes := jobfile.Compare(before, load(map[string]string{"job.yaml": more}), core.Parameters{}, nil)
	require.Equal(t, []jobfile.Change{{Step: "load_booking", What: "is new"}, {Step: "tell_booking", What: "is new"}}, changes)
}
