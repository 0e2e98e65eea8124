package operator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAnExecutionIsComparedWithAnotherOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("copy.yaml", copyJob)
		var runs []*core.JobExecution
		for i, year := range []string{"1991", "1992", "1993"} {
			s.write("in.csv", numberedLines(4+2*i, 3))
			runs = append(runs, s.run("copy.yaml", map[string]string{"year": year, "note": "n" + year}))
			require.Equal(t, core.StatusCompleted, runs[i].Status, runs[i].Error)
		}
		s.write("copy.yaml", strings.ReplaceAll(strings.Replace(copyJob, "path: in.csv", "path: other.csv", 1), "step: last", "step: final"))
		s.write("other.csv", numberedLines(12))
		last := s.run("copy.yaml", map[string]string{"year": "3001"})
		require.Equal(t, core.StatusCompleted, last.Status, last.Error)
		s.write("other.csv", numberedLines(12, 1))
		last = s.run("copy.yaml", map[string]string{"year": "1994"})
		require.Equal(t, core.StatusCompleted, last.Status, last.Error)

		skips, err := s.s.Skips(ctx, SkipsRequest{Execution: last.ID})
		require.NoError(t, err)
		raw := "1"
		redrive, err := s.s.Redrive(ctx, RedriveRequest{Execution: last.ID, Edited: map[int64]Edit{skips.Items[0].ID: {Raw: &raw}}})
		require.NoError(t, err)
		redriven, err := redrive.Wait()
		require.NoError(t, err)
		require.Equal(t, last.ID, redriven.RedriveOf)
		after := s.run("copy.yaml", map[string]string{"year": "1995"})
		none, err := s.s.Compare(ctx, CompareRequest{Execution: after.ID})
		require.NoError(t, err)
		require.Equal(t, last.ID, none.With.ID, "a redrive in between is no run of the job")

		typical, err := s.s.Compare(ctx, CompareRequest{Execution: runs[2].ID, With: WithTypical})
		require.NoError(t, err)
		require.Equal(t, []core.JobExecutionID{runs[1].ID, runs[0].ID}, typical.Typical)
		require.Equal(t, "copy", typical.Steps[1].Step)
		require.Equal(t, 7.0, typical.Steps[1].Read.This)
		require.Equal(t, 4.0, typical.Steps[1].Read.With, "the median of 3 and 5")
		require.Equal(t, 75.0, *typical.Steps[1].Read.Percent)

		with, err := s.s.Compare(ctx, CompareRequest{Execution: last.ID, With: "1"})
		require.NoError(t, err)
		with.Duration, with.With.Started, with.Execution.Started = Figure{}, runs[0].StartedAt, runs[0].StartedAt
		for i := range with.Steps {
			with.Steps[i].Duration, with.Steps[i].Rate = Figure{}, Figure{}
		}
		s.matches("compare", with)
		previous, err := s.s.Compare(ctx, CompareRequest{Execution: last.ID})
		require.NoError(t, err)
		require.Equal(t, []VerdictChange{{Element: "way", This: "copy", With: "end"}}, previous.Decisions)

		var wrong *RequestError
		_, err = s.s.Compare(ctx, CompareRequest{Execution: last.ID, With: "yesterday"})
		require.ErrorAs(t, err, &wrong)
		_, err = s.s.Compare(ctx, CompareRequest{Execution: runs[0].ID})
		require.ErrorAs(t, err, &wrong)
		_, err = s.s.Compare(ctx, CompareRequest{Execution: last.ID, With: "99"})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}
