package operator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTheStepOfARedriveKeepsTheDotsOfItsName(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Repository: ports.Repository{Explorer: &counting{}}})
	require.NoError(t, err)
	for _, name := range []string{"load", "load.2026", "a.b.c", ".", "1.2"} {
		params, err := withRedrive(core.Parameters{}, 7, name, 3)
		require.NoError(t, err)
		require.Equal(t, name, redrivenStep(params))
		require.EqualValues(t, 3, redriveNumber(params))
		action := s.runs.judge.restartAction(&core.JobExecution{ID: 9, RedriveOf: 7, Params: params, Definition: core.Definition{Path: "job.yaml"}}, false)
		require.Equal(t, Action{Kind: refusal.ActRedrive, Execution: 7, Step: name}, action, fmt.Sprint(name))
	}
	require.Empty(t, redrivenStep(core.Parameters{}))
}
