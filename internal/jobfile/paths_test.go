package jobfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAStringParameterThatIsAllOfAPathIsAPath(t *testing.T) {
	t.Parallel()
	file, err := jobfile.Parse("/jobs/job.yaml", []byte(`
job: paths
parameters:
  whole: {type: string}
  spaced: {type: string}
  folder: {type: string}
  name: {type: string}
  chosen: {type: string, enum: [a.csv, b.csv]}
  shaped: {type: string, pattern: '\w+'}
  text: {type: string}
  number: {type: int}
  declared: {type: path}
flow:
- step: a
  tasklet:
    note:
      path: ${params.whole}
      paths: ["${ params.spaced }", "${params.folder}/in.csv", "x-${params.name}.csv", "${params.chosen}", "${params.shaped}", "${params.declared ?? 'x'}"]
      text: ${params.text}
`), described(t))
	require.NoError(t, err)
	types := map[string]core.ParameterType{}
	for _, spec := range file.Parameters() {
		types[spec.Name] = spec.Type
		if spec.Type == core.TypePath {
			require.Equal(t, "/jobs", spec.Folder)
		}
	}
	require.Equal(t, map[string]core.ParameterType{
		"whole": core.TypePath, "spaced": core.TypePath, "declared": core.TypePath,
		"folder": core.TypeString, "name": core.TypeString, "chosen": core.TypeString, "shaped": core.TypeString, "text": core.TypeString,
		"number": core.TypeInt,
	}, types)
}
