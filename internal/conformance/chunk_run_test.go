package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// launchTime bounds a launch: a step that never ends is a failure with a name.
const launchTime = 2 * time.Minute

// chunkFamily opens an engine on each database, which the scenarios share. No
// statement depends on the reader.
func chunkFamily(t *testing.T) func(t *testing.T, d document) {
	urls := []struct{ name, url string }{{"sqlite", testdb.SQLite(t)}, {"postgres", testdb.Postgres(t)}, {"mysql", testdb.MySQL(t)}}
	engines := make([]*testengine.Engine, len(urls))
	for i, u := range urls {
		engines[i] = testengine.New(t, u.url)
	}
	var runs int
	return func(t *testing.T, d document) {
		s, err := decodeChunk(d)
		require.NoError(t, err, "%s: scenario %s", d.path, d.id)
		reason, err := s.differing()
		require.NoError(t, err)
		if reason != "" {
			t.Skip(reason)
		}
		for i, u := range urls {
			t.Run(u.name, func(t *testing.T) {
				kinds := s.readers()
				if i > 0 && !isSoak() {
					kinds = kinds[:1]
				}
				for _, kind := range kinds {
					t.Run(kind, func(t *testing.T) {
						runs++
						r := &chunkRun{t: t, engine: engines[i], scenario: s, positioned: kind != withoutPosition, ahead: kind == readingAhead, name: fmt.Sprintf("run_%d", runs)}
						r.run()
					})
				}
			})
		}
	}
}

const (
	withPosition    = "reader with a position"
	withoutPosition = "reader without a position"
	// readingAhead is the reader with a position, in a step that reads ahead (rule C19).
	readingAhead = "reading ahead"
)

// readers are the kinds of reader without an observable difference. A restart
// reads the one without a position from its start.
func (s *chunkScenario) readers() []string {
	strikes := func(f fault) bool {
		lasting := f.Times == 0 && f.OnCall == nil && f.Attempts == nil
		skippable := f.ErrorClass == "skippable" || f.ErrorClass == "both"
		return f.Phase == phaseRead && !(lasting && skippable)
	}
	if s.Restart != nil && slices.ContainsFunc(s.Restart.Faults, strikes) {
		return []string{withPosition, readingAhead}
	}
	return []string{withPosition, withoutPosition, readingAhead}
}

type chunkRun struct {
	t          *testing.T
	engine     *testengine.Engine
	scenario   *chunkScenario
	classes    *classes
	positioned bool
	ahead      bool
	name       string // of job and table
	change     func(*chunk.Config)
}

func (r *chunkRun) prepare() {
	r.t.Helper()
	var err error
	r.classes, err = newClasses(r.scenario)
	require.NoError(r.t, err)
	require.NoError(r.t, makeItemTable(r.t.Context(), r.engine.Database, r.name))
}

func (r *chunkRun) exec(statement string) {
	r.t.Helper()
	_, err := r.engine.Database.Conn().ExecContext(r.t.Context(), statement)
	require.NoError(r.t, err, statement)
}

func (r *chunkRun) run() {
	r.prepare()
	s := r.scenario
	first := r.launch(s.Faults, &s.Expect, false)
	r.compare("", &s.Expect, first)
	if s.Restart == nil {
		return
	}
	r.exec("delete from " + r.name) // after_restart is about the second launch alone
	second := r.launch(s.Restart.Faults, s.Expect.AfterRestart, true)
	r.compare("after_restart.", s.Expect.AfterRestart, second)
}

type outcome struct {
	*record
	job     *core.JobExecution
	step    core.StepExecution
	failure error // that ended the step
	written []string
	skipped []string
}

func (r *chunkRun) launch(list []fault, e *expectation, again bool) *outcome {
	r.t.Helper()
	seen := newRecord(list)
	config := r.config(seen, list, e, again)
	if r.change != nil {
		r.change(&config)
	}
	s, err := chunk.New(config)
	require.NoError(r.t, err)
	ctx, cancel := context.WithTimeout(r.t.Context(), launchTime)
	defer cancel()
	job, err := r.engine.Launcher.Run(ctx, testengine.Job(r.name, &model.StepElement{Step: s}), core.Parameters{}, nil)
	require.NoError(r.t, err, "launch")
	o := &outcome{record: seen, job: job, written: r.written()}
	steps, err := r.engine.Repository.Steps(r.t.Context(), job.ID)
	require.NoError(r.t, err)
	require.Len(r.t, steps, 1, "job error: %s", job.Error)
	o.step, o.failure = steps[0], r.failure(steps[0].ID)
	o.skipped = r.skipped(job.ID)
	return o
}

func (r *chunkRun) config(seen *record, list []fault, e *expectation, again bool) chunk.Config {
	s := r.scenario
	names := watched(list, e)
	var policy chunk.SkipPolicy = chunk.LimitSkip{Limit: int64(s.SkipLimit), Skippable: r.classes.skippable}
	if policyFails(list) {
		policy = faultyPolicy{probe{seen, skipPolicy}, policy}
	}
	readAhead := chunk.ReadAheadOff
	if r.ahead {
		readAhead = chunk.ReadAheadOn
	}
	concurrency := 0
	if s.Mode == concurrent {
		concurrency = 3
	}
	return chunk.Config{
		Name: "step", Size: s.ChunkSize, Database: r.engine.Database, Concurrency: concurrency,
		Retry: chunk.Retry{Limit: s.RetryLimit, Retryable: r.classes.retryable},
		Skip:  policy, KeepOutputs: s.Processor == cached, ReadAhead: readAhead,
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			parts := r.parts(seen, names, again)
			parts.Processors = []item.Processor{item.EraseProcessor[entry, *product](&processor{record: seen, filters: s.Filters, pure: isPure(list, e)})}
			return parts, nil
		},
	}
}

// isPure reports whether the scenario does not show when, and how often, an item is processed.
func isPure(list []fault, e *expectation) bool {
	return e.ProcessCalls == nil && e.ProcessCallCount == nil &&
		!slices.ContainsFunc(list, func(f fault) bool { return f.Phase == phaseProcess })
}

// parts are the components of one launch, without the processor. Every
// listener is registered twice, and the after_write listener is the writer
// itself.
func (r *chunkRun) parts(seen *record, names []string, again bool) chunk.Parts {
	s := r.scenario
	source := &reader{record: seen, list: s.Items}
	target := &writer{record: seen, database: r.engine.Database, fresh: s.Processor == replay, insert: insertInto(r.engine.Database, r.name)}
	parts := chunk.Parts{
		Reader:  item.EraseReader[entry](source),
		Writers: []item.Writer{item.EraseWriter[*product](target)},
	}
	if r.positioned {
		parts.Reader = item.EraseReader[entry](&positioned{source})
	}
	if again {
		parts.Listeners = append(parts.Listeners, &marker{source})
	}
	for _, name := range names {
		p := probe{seen, name}
		l := listeners()[name](p)
		if name == "after_write" {
			w := &listeningWriter{target, afterWrite{p}}
			parts.Writers[0], l = item.EraseWriter[*product](w), w
		}
		parts.Listeners = append(parts.Listeners, l, l)
	}
	return parts
}

func (r *chunkRun) written() []string {
	r.t.Helper()
	list, err := itemsOf(r.t.Context(), r.engine.Database, r.name)
	require.NoError(r.t, err)
	return list
}

func (r *chunkRun) failure(id core.StepExecutionID) error {
	for _, event := range slices.Backward(r.engine.Events()) {
		if ended, ok := event.(core.StepEnded); ok && ended.Step.ID == id {
			return ended.Err
		}
	}
	return nil
}

// skipped reads the stored skipped items. A failed read has none: there the error's text names it.
func (r *chunkRun) skipped(id core.JobExecutionID) []string {
	r.t.Helper()
	stored, err := r.engine.Repository.SkippedItems(r.t.Context(), ports.SkipFilter{Execution: id, Limit: 100_000})
	require.NoError(r.t, err)
	list := []string{}
	for _, s := range stored {
		var e entry
		if s.Phase == core.PhaseRead {
			value, found := afterItem(s.Error)
			require.True(r.t, found, "the stored error %q is not the reader's", s.Error)
			e.Value = value
		} else {
			require.NoError(r.t, json.Unmarshal(s.Item, &e), "the stored item %s", s.Item)
		}
		list = append(list, e.Value)
	}
	return list
}
