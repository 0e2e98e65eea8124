package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
)

// Rules C7 and C17: the path changes, the result does not. Scenarios with
// faults that count calls are left out.
func TestSettingsThatMayNotChangeTheOutcome(t *testing.T) {
	t.Parallel()
	settings := map[string]func(*chunk.Config){
		"isolate bisect":         func(c *chunk.Config) { c.Isolate = chunk.IsolateBisect },
		"concurrency":            func(c *chunk.Config) { c.Concurrency = 4 },
		"bisect and concurrency": func(c *chunk.Config) { c.Isolate, c.Concurrency = chunk.IsolateBisect, 2 },
		"process in transaction": func(c *chunk.Config) { c.ProcessInTransaction, c.Concurrency = true, 0 },
		"keep outputs":           func(c *chunk.Config) { c.KeepOutputs = true },
	}
	var documents []document
	for _, dir := range []string{scenarioFolder(t), "own"} {
		files, err := readFolder(dir)
		require.NoError(t, err)
		documents = append(documents, ofFamily(files, "chunk")...)
	}
	e := testengine.New(t, testdb.SQLite(t))
	runs := 0
	for turn, name := range sortedKeys(settings) {
		t.Run(name, func(t *testing.T) {
			ran := 0
			for i, d := range documents {
				if (i+turn)%3 > 0 && !isSoak() {
					continue
				}
				s, err := decodeChunk(d)
				require.NoError(t, err)
				if reason, err := s.differing(); err != nil || reason != "" || s.countsCalls() {
					continue
				}
				s.Expect.outcomeOnly()
				s.Processor = cached // the writer does not insist on fresh products
				ran++
				t.Run(d.id, func(t *testing.T) {
					runs++
					r := &chunkRun{
						t: t, engine: e, scenario: s, positioned: runs%2 == 0, name: fmt.Sprintf("run_%d", runs),
						change: func(c *chunk.Config) {
							c.KeepOutputs = false
							settings[name](c)
						},
					}
					r.run()
				})
			}
			require.NotZero(t, ran)
		})
	}
}

func (s *chunkScenario) countsCalls() bool {
	list := s.Faults
	if s.Restart != nil {
		list = slices.Concat(list, s.Restart.Faults)
	}
	return slices.ContainsFunc(list, func(f fault) bool {
		return f.Times > 0 || f.OnCall != nil || f.Attempts != nil || f.MinBatch > 0 || f.Phase == phaseListener
	})
}

// outcomeOnly keeps the values that must be the same on every path of the step.
func (e *expectation) outcomeOnly() {
	if e == nil {
		return
	}
	*e = expectation{
		Status: e.Status, ExitCode: e.ExitCode, Error: e.Error,
		Read: e.Read, Write: e.Write, Filter: e.Filter, Skips: e.Skips,
		ReadSkip: e.ReadSkip, ProcessSkip: e.ProcessSkip, WriteSkip: e.WriteSkip,
		Written: e.Written, WrittenCount: e.WrittenCount, ReadItems: e.ReadItems, ReadCalls: e.ReadCalls,
		SkippedItems: e.SkippedItems, ResumeAt: e.ResumeAt, AfterRestart: e.AfterRestart,
	}
	e.AfterRestart.outcomeOnly()
}
