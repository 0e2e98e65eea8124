package step_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAStepWhoseContextIsTooLargeFails(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		record := b.do(t.Context(), b.tasklet(func(_ context.Context, c *core.StepContribution) error {
			return c.Context.Put("text", strings.Repeat("x", core.MaxContextBytes))
		}))
		require.Equal(t, core.StatusFailed, record.Status)
		require.Contains(t, record.Error, "too large")
		require.Empty(t, valuesOf(record.Context))
	})
}

func TestAStepWhoseResultsCannotBeStoredFails(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		for contains, work := range map[string]func(*core.StepContribution) error{
			`too large`: func(c *core.StepContribution) error {
				c.Out = map[string]any{"n": 1, "text": strings.Repeat("x", core.MaxContextBytes)}
				return nil
			},
			`the largest key is "text"`: func(c *core.StepContribution) error {
				c.Out = map[string]any{"n": 1, "text": strings.Repeat("x", core.MaxContextBytes)}
				return testengine.ErrLine
			},
			`key "ratio": json: unsupported value: NaN`: func(c *core.StepContribution) error {
				c.Out = map[string]any{"n": 1, "ratio": math.NaN()}
				return nil
			},
			`it has 3000 bytes, more than the allowed 500`: func(c *core.StepContribution) error {
				c.ExitCode = strings.Repeat("é", 1500)
				return nil
			},
			`it contains a NUL`: func(c *core.StepContribution) error {
				c.ExitCode = "A\x00"
				return testengine.ErrLine
			},
			`key "ratio": +Inf cannot be stored`: func(c *core.StepContribution) error {
				return c.Context.Put("ratio", math.Inf(1))
			},
		} {
			record := b.do(t.Context(), b.tasklet(func(_ context.Context, c *core.StepContribution) error { return work(c) }))
			require.Equal(t, core.StatusFailed, record.Status, contains)
			require.Equal(t, core.ExitFailed, record.ExitCode, contains)
			require.Contains(t, record.Error, contains)
			require.Empty(t, record.Out, contains)
		}
	})
}

func TestResultsHaveTheSameTypesBeforeAndAfterARestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
		record := b.do(t.Context(), b.tasklet(func(_ context.Context, c *core.StepContribution) error {
			c.Out = map[string]any{"small": int32(7), "whole": 1.0, "at": at, "list": []string{"a"}, "floats": []float64{1, 2.5}, "none": nil}
			return nil
		}))
		want := map[string]any{"small": int64(7), "whole": 1.0, "at": "2026-11-22T08:00:00Z", "list": []any{"a"}, "floats": []any{1.0, 2.5}, "none": nil}
		require.Equal(t, want, record.Out)
	})
}
