package job_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A walk without the row would repeat finished work.
func TestARowOfTheJournalThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for kind, want := range map[ports.VisitKind]string{
		ports.VisitTurn:  `the journal of execution 1, flow "", visit 2: a row of kind turn has the target "two"`,
		ports.VisitAdopt: `the journal of execution 1, flow "", visit 2: a row of kind adopt has the target "two"`,
		ports.VisitPass:  `the journal of execution 1 passes step execution "two"`,
	} {
		t.Run(string(kind), func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, url string) {
				s := &script{e: testengine.New(t, url), exits: map[string]string{}}
				j := testengine.Job("job", s.step("a"), s.step("b"))
				s.failing("b")
				first, _ := s.run(j)
				require.Equal(t, core.StatusFailed, first.Status)
				require.NoError(t, tx.NewManager(s.e.Database).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
					recorded, err := s.e.Repository.RecordVisits(ctx, first.ID, []ports.FlowVisit{
						{Visit: core.Visit{Ordinal: 2, Element: "a"}, Kind: kind, Target: "two"},
					})
					require.True(t, recorded)
					return err
				}))
				_, err := planner.New(t.Context(), s.e.Repository, j, first, nil)
				require.ErrorContains(t, err, want)
				s.failing()
				exec, ran := s.run(j)
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Contains(t, exec.Error, want)
				require.Empty(t, ran)
			})
		})
	}
}
