package job_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// BenchmarkAPlanOfAThousandSteps plans the restart of a flow in which a failure of each step leads on:
// nothing after the first one is certain.
func BenchmarkAPlanOfAThousandSteps(b *testing.B) {
	const steps = 1000
	e := testengine.New(b, testdb.SQLite(b))
	name := func(i int) string { return fmt.Sprintf("s%d", min(i, steps-1)) }
	j := testengine.Job("big")
	for i := range steps {
		s := e.Tasklet(name(i), tx.Attr{}, func(context.Context, *core.StepContribution) error {
			return errors.New("it fails")
		})
		if s.Next = []model.Transition{to(name(i + 1))}; i > 0 {
			s.Next = append(s.Next, upon(core.ExitFailed, name(i+3)))
		}
		if i == steps-1 {
			s.Next = nil
		}
		j.Flow.Elements = append(j.Flow.Elements, s)
	}
	e.Run(j)
	last, err := newestOf(b.Context(), e, j.Name)
	require.NoError(b, err)
	for b.Loop() {
		_, err := planner.New(b.Context(), e.Repository, j, last, nil)
		require.NoError(b, err)
	}
}
