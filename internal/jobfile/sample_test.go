package jobfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestUsesTellWhatAStepWorksOnAsFarAsItIsKnownBeforeItStarts(t *testing.T) {
	t.Parallel()
	f, err := jobfile.Parse("job.yaml", []byte(`job: j
parameters:
  name: {type: string, default: apples}
flow:
- {step: first, tasklet: idle}
- step: load
  chunk:
    reader: {count: {to: 3, label: "${steps.first.out.label}"}}
    writer:
    - {sink: "${params.name}"}
    - {sink: {name: "to ${steps.first.exit}"}}
`), described(t))
	require.NoError(t, err)
	params, err := core.NewParameters(core.Parameter{Name: "name", Type: core.TypeString, Value: "pears", Identifying: true})
	require.NoError(t, err)
	require.Equal(t, []jobfile.Used{
		{Step: "first", Kind: registry.KindTasklet, Component: "idle"},
		{Step: "load", Kind: registry.KindReader, Component: "count", Needs: []string{"steps.first.out.label"}},
		{Step: "load", Kind: registry.KindWriter, Component: "sink", Target: "pears", Database: "default", Columns: []string{"n", "label"}},
		{
			Step: "load", Kind: registry.KindWriter, Component: "sink", Written: "to ${steps.first.exit}", Database: "default",
			Columns: []string{"n", "label"}, Needs: []string{"steps.first.exit"},
		},
	}, f.Uses(params))
}
