package step_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func itoa(i int) string { return strconv.Itoa(i) }

func TestAnExitCodeOfTheTaskletCountsHoweverItEnds(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		for _, c := range []struct {
			err      error
			own      string
			status   core.Status
			exit     string
			contains string
		}{
			{nil, "", core.StatusCompleted, "COMPLETED", ""},
			{nil, "MAYBE", core.StatusCompleted, "MAYBE", ""},
			{testengine.ErrLine, "", core.StatusFailed, "FAILED", "dead"},
			{testengine.ErrLine, "LINE DEAD", core.StatusFailed, "LINE DEAD", "dead"},
			{core.ErrStopped, "", core.StatusStopped, "STOPPED", "on request"},
			{core.ErrStopped, "HALFWAY", core.StatusStopped, "HALFWAY", "on request"},
			{fmt.Errorf("sent: %w", ports.ErrUnknownOutcome), "", core.StatusUnknown, "UNKNOWN", "sent"},
			{fmt.Errorf("sent: %w", ports.ErrUnknownOutcome), "NO ANSWER", core.StatusUnknown, "NO ANSWER", "sent"},
			{errors.Join(core.ErrStopped, ports.ErrUnknownOutcome), "", core.StatusUnknown, "UNKNOWN", "not known"},
		} {
			record := b.do(t.Context(), b.tasklet(func(_ context.Context, s *core.StepContribution) error {
				s.ExitCode = c.own
				return c.err
			}))
			require.Equal(t, c.status, record.Status, c)
			require.Equal(t, c.exit, record.ExitCode, c)
			require.Contains(t, record.Error, c.contains, c)
		}
	})
}

// Rule C10.
func TestTheOutcomeOfAFailedCommitIsWhatTheRowSaysOrUnknown(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		other := another(t, testdb.SQLite(t))
		for _, c := range []struct {
			name   string
			db     tx.Database
			attr   tx.Attr
			commit func(tx.Handle) error
			status core.Status
			exit   string
		}{
			{"own, lost before", b.Database, tx.Attr{}, testengine.LostBefore, core.StatusFailed, "FAILED"},
			{"own, rolled back", b.Database, tx.Attr{}, rolledBack, core.StatusFailed, "FAILED"},
			{"own, lost after", b.Database, tx.Attr{}, testengine.LostAfter, core.StatusCompleted, "FINE"},
			{"own, read only", b.Database, tx.Attr{ReadOnly: true}, testengine.LostBefore, core.StatusFailed, "FAILED"},
			{"other, lost before", other, tx.Attr{}, testengine.LostBefore, core.StatusUnknown, "UNKNOWN"},
			{"other, lost after", other, tx.Attr{}, testengine.LostAfter, core.StatusUnknown, "UNKNOWN"},
			{"other, rolled back", other, tx.Attr{}, rolledBack, core.StatusFailed, "FAILED"},
			{"other, read only", other, tx.Attr{ReadOnly: true}, testengine.LostBefore, core.StatusFailed, "FAILED"},
		} {
			record := b.do(t.Context(), b.tasklet(func(_ context.Context, s *core.StepContribution) error {
				s.ExitCode = "FINE"
				return nil
			}, func(config *step.TaskletConfig) {
				config.Database, config.Attr = testengine.Committing{Database: c.db, Commit: c.commit}, c.attr
			}))
			require.Equal(t, c.status, record.Status, c.name)
			require.Equal(t, c.exit, record.ExitCode, c.name)
			if c.status == core.StatusCompleted {
				require.Empty(t, record.Error, c.name)
			}
		}
	})
}

func TestACommitErrorThatTheTaskletReturnsIsAFailure(t *testing.T) {
	t.Parallel()
	b := newBed(t, testdb.SQLite(t))
	record := b.do(t.Context(), b.tasklet(func(context.Context, *core.StepContribution) error {
		return &tx.CommitError{Err: testengine.ErrLine}
	}, func(c *step.TaskletConfig) { c.Database = another(t, testdb.SQLite(t)) }))
	require.Equal(t, core.StatusFailed, record.Status)
}

func TestAStepIsRecordedUnderTheNameThatItIsGiven(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		s := b.tasklet(func(context.Context, *core.StepContribution) error { return nil })
		record := b.do(t.Context(), s, func(r *model.StepRun) { r.Data.Name = "work:p1" })
		require.Equal(t, "work:p1", record.Name)
	})
}

func TestAPlannedStepBeginsOnceAndWithWhatWasPlanned(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		part := core.Partition{Name: "p1", Context: core.NewExecutionContext()}
		require.NoError(t, part.Context.Put("file", "a.csv"))
		planned, err := b.Repository.PlanPartitions(t.Context(), b.ref, ports.PartitionPlan{Step: "work", Parts: []core.Partition{part}})
		require.NoError(t, err)
		s := b.tasklet(func(_ context.Context, c *core.StepContribution) error {
			file, _ := c.Context.Get("file")
			c.Out = map[string]any{"file": file}
			return nil
		})
		inPlan := func(r *model.StepRun) { r.Data.Name, r.Data.Planned = core.PartName("work", "p1"), &planned[0] }
		record := b.do(t.Context(), s, inPlan)
		require.Equal(t, planned[0].ID, record.ID)
		require.Equal(t, core.StatusCompleted, record.Status)
		require.Equal(t, "a.csv", record.Out["file"])
		require.Equal(t, core.StatusStarting, planned[0].Status, "the plan is the planner's")

		run := b.run()
		inPlan(run)
		_, err = b.executor.Execute(t.Context(), s, run)
		require.ErrorIs(t, err, core.ErrLostOwner)
	})
}
