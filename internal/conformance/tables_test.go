package conformance_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type tables struct {
	PatternOrder  [][]string `yaml:"pattern_order"`
	PatternMatch  [][]string `yaml:"pattern_match"`
	SeverityOrder [][]string `yaml:"severity_order"`
	StatusMax     [][]string `yaml:"status_max"`
	ExitAnd       [][]string `yaml:"exit_and"`
}

func (t *tables) empty() bool {
	return t.PatternOrder == nil && t.PatternMatch == nil && t.SeverityOrder == nil && t.StatusMax == nil && t.ExitAnd == nil
}

func (t *tables) columns() map[string]struct {
	rows [][]string
	n    int
} {
	type table = struct {
		rows [][]string
		n    int
	}
	return map[string]table{
		"pattern_order": {t.PatternOrder, 2}, "pattern_match": {t.PatternMatch, 3},
		"severity_order": {t.SeverityOrder, 2}, "status_max": {t.StatusMax, 3}, "exit_and": {t.ExitAnd, 3},
	}
}

func (t *tables) validate() error {
	var errs []error
	columns := t.columns()
	for _, key := range sortedKeys(columns) {
		for i, row := range columns[key].rows {
			if len(row) != columns[key].n {
				errs = append(errs, fmt.Errorf("%s: row %d has %d values, not %d", key, i+1, len(row), columns[key].n))
			}
		}
	}
	return errors.Join(errs...)
}

func (t *tables) problems() []string {
	var list []string
	rows := func(key string, table [][]string, holds func(row []string) (got any, ok bool)) {
		for i, row := range table {
			if got, ok := holds(row); !ok {
				list = append(list, fmt.Sprintf("%s: row %d %v: got %v", key, i+1, row, got))
			}
		}
	}
	rows("pattern_order", t.PatternOrder, func(row []string) (any, bool) {
		got := model.ComparePatterns(row[0], row[1])
		return got, got < 0 && winsWhateverTheOrder(row[0], row[1])
	})
	rows("pattern_match", t.PatternMatch, func(row []string) (any, bool) {
		got := model.MatchPattern(row[0], row[1])
		return got, fmt.Sprint(got) == row[2]
	})
	rows("severity_order", t.SeverityOrder, func(row []string) (any, bool) {
		got := model.CompareSeverity(row[0], row[1])
		return got, got < 0 && model.CompareSeverity(row[1], row[0]) > 0
	})
	rows("status_max", t.StatusMax, func(row []string) (any, bool) {
		got := model.MaxStatus(core.Status(row[0]), core.Status(row[1]))
		return got, string(got) == row[2]
	})
	rows("exit_and", t.ExitAnd, func(row []string) (any, bool) {
		got := model.AndExit(row[0], row[1])
		return got, got == row[2]
	})
	return list
}

// winsWhateverTheOrder asks the choice of transitions itself, for a code equal to the specific pattern's
// text.
func winsWhateverTheOrder(specific, general string) bool {
	to := func(name string) model.Target { return model.Target{Kind: model.TargetElement, Name: name} }
	if !model.MatchPattern(specific, specific) || !model.MatchPattern(general, specific) {
		return true // no code here that both match
	}
	a, b := model.Transition{Pattern: specific, Target: to("specific")}, model.Transition{Pattern: general, Target: to("general")}
	first, _ := model.Next([]model.Transition{a, b}, core.StatusCompleted, specific)
	second, _ := model.Next([]model.Transition{b, a}, core.StatusCompleted, specific)
	return first.Name == "specific" && second.Name == "specific"
}

// compareTables compares every row of a scenario's tables; a scenario that assumes another choice than ours
// is skipped, with the knob as the reason.
func compareTables(t *testing.T, differing func() (string, error), rows *tables) {
	t.Helper()
	reason, err := differing()
	require.NoError(t, err)
	if reason != "" {
		t.Skip(reason)
	}
	for _, p := range rows.problems() {
		assert.Fail(t, p)
	}
}
