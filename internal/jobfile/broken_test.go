package jobfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestEveryMistakeIsReportedWithPositionExcerptAndHint(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/broken/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			reg := described(t)
			if strings.HasPrefix(filepath.Base(path), "shipped_") { // components of ours, not of this test
				reg, err = assembly.NewRegistry()
				require.NoError(t, err)
			}
			_, err = jobfile.Parse("job.yaml", text, reg)
			if strings.HasSuffix(path, "children.yaml") || strings.HasSuffix(path, "include.yaml") { // they name other files
				_, err = jobfile.Load(path, described(t))
			}
			var problems jobfile.Problems
			require.ErrorAs(t, err, &problems)
			golden := strings.TrimSuffix(path, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), problems.Error()+"\n")
		})
	}
}

func TestAJobFileWithFiveMistakesReportsAllFiveWithTheirPositions(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Load("testdata/broken/five_mistakes.yaml", described(t))
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	var at [][2]int
	for _, p := range problems {
		require.Equal(t, "testdata/broken/five_mistakes.yaml", p.File)
		at = append(at, [2]int{p.Line, p.Col})
	}
	require.Equal(t, [][2]int{{5, 5}, {6, 26}, {7, 13}, {8, 18}, {9, 9}}, at)
}

func TestAComponentThatPanicsAtLoadIsOneOfTheMistakes(t *testing.T) {
	t.Parallel()
	reg, err := registry.New(append(components(),
		registry.Component{Kind: registry.KindTasklet, Name: "bomb", Config: reflect.TypeFor[bombConfig]()},
		registry.Component{Kind: registry.KindProcessor, Name: "mine", Types: func(any, item.Type) (item.Type, error) { panic("stepped on") }},
	), items(), nil)
	require.NoError(t, err)
	_, err = jobfile.Parse("job.yaml", []byte(`
job: x
flow:
- {step: a, tasklet: {bomb: 0}}
- step: b
  chunk:
    reader: apples
    processor: mine
    writer: sink
`), reg)
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 3)
	require.Equal(t, "tasklet bomb: panic: runtime error: integer divide by zero", problems[0].Msg)
	require.Equal(t, [2]int{4, 23}, [2]int{problems[0].Line, problems[0].Col})
	require.Equal(t, "processor mine: panic: stepped on", problems[1].Msg)
	require.Equal(t, [2]int{8, 16}, [2]int{problems[1].Line, problems[1].Col})
	require.Equal(t, 9, problems[2].Line, "sink needs a name")
}

func TestAFileThatIsNotThereIsOneClearLine(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Load("testdata/none.yaml", described(t))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.EqualError(t, err, "job file: open testdata/none.yaml: no such file or directory")
	_, err = jobfile.Load("testdata/expandde.yml", described(t))
	require.EqualError(t, err, "job file: open testdata/expandde.yml: no such file or directory (nearest: expanded.yaml)")
}

// The file is a table: "== TITLE", a job file, "-- refused", and the text of
// the error.
func TestTypicalMistakesOfNewcomersAreRefusedWithPositionAndCure(t *testing.T) {
	t.Parallel()
	const table, title, answer = "testdata/newcomers.txt", "== ", "-- refused\n"
	cure := regexp.MustCompile(`did you mean |\b(write|leave|omit|remove|choose|set|use) `)
	reg, err := assembly.NewRegistry()
	require.NoError(t, err)
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	var written strings.Builder
	cases := strings.Split("\n"+string(text), "\n"+title)[1:]
	require.GreaterOrEqual(t, len(cases), 40)
	for _, c := range cases {
		name, rest, _ := strings.Cut(c, "\n")
		file, want, _ := strings.Cut(rest+"\n", answer)
		_, err := jobfile.Parse("job.yaml", []byte(file), reg)
		got := "nothing\n"
		if err != nil {
			got = err.Error() + "\n"
		}
		written.WriteString(title + name + "\n" + file + answer + got)
		if !*update {
			assert.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), name)
		}
		var problems jobfile.Problems
		if assert.ErrorAs(t, err, &problems, name) {
			assert.True(t, slices.ContainsFunc(problems, func(p jobfile.Problem) bool {
				return p.Hint != "" || cure.MatchString(p.Msg)
			}), "no cure: %s", name)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(written.String()), 0o644))
	}
}
