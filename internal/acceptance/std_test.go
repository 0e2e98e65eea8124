package acceptance

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

const filterJob = `
job: filter
parameters: {input: {type: path}, output: {type: path, default: "-"}, least: {type: int, default: 2}}
flow:
- step: keep
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: {id: int, name: string}}}
    processor: {filter: item.id >= params.least}
    writer: {jsonl: "${params.output}"}
`

func TestRowsGoThroughThePipesOfTheCommand(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"job.yaml": filterJob})
	run := func(stdin string, args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		cmd := testtree.Command(t.Context(), surfin, args...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, strings.NewReader(stdin), &out, &errs
		cmd.Env = append(cmd.Environ(), "DATABASE_URL="+s.url, "SURFIN_AUTO_MIGRATE=true")
		err := cmd.Run()
		if cmd.ProcessState == nil {
			require.NoError(t, err)
		}
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	out, errs, code := run("id,name\n1,a\n2,b\n3,c\n4,d\n", "run", "job.yaml", "input=-")
	require.Zero(t, code, errs)
	require.Equal(t, "{\"id\":2,\"name\":\"b\"}\n{\"id\":3,\"name\":\"c\"}\n{\"id\":4,\"name\":\"d\"}\n", out)
	require.Contains(t, errs, "COMPLETED")

	out, errs, code = run("id,name\n5,a\n6,b\nseven,c\n", "run", "job.yaml", "input=-", "least=0")
	require.Equal(t, 1, code)
	require.Equal(t, "{\"id\":5,\"name\":\"a\"}\n{\"id\":6,\"name\":\"b\"}\n", out, "the rows of committed chunks")
	require.Contains(t, errs, "-:4: character 1: field id")
	out, errs, code = run("id,name\n7,c\n", "run", "job.yaml", "input=-", "least=0")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, "cannot restart: 16 bytes of the standard input were read")
	out, errs, code = run("id,name\n7,c\n", "run", "job.yaml", "input=-", "least=0", "--from-start")
	require.Zero(t, code, errs)
	require.Equal(t, "{\"id\":7,\"name\":\"c\"}\n", out)
}
