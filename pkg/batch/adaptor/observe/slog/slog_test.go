package slog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	events "github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type line = map[string]any

func lines(t *testing.T, text []byte) []line {
	t.Helper()
	var all []line
	for _, l := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var m line
		require.NoError(t, json.Unmarshal(l, &m), "%s", l)
		all = append(all, m)
	}
	return all
}

func described(t *testing.T, l line) {
	t.Helper()
	i := slices.IndexFunc(events.Catalog(), func(e events.Entry) bool { return e.Event == l["event"] })
	require.GreaterOrEqual(t, i, 0, "%v is not in the catalog", l["event"])
	e := events.Catalog()[i]
	require.Contains(t, e.Levels, l["level"].(string), "%v", l)
	allowed := []string{"time", "level", "msg", "event"}
	for _, a := range strings.Fields(e.Attributes) {
		name, optional := strings.CutPrefix(a, "[")
		allowed = append(allowed, strings.TrimSuffix(name, "]"))
		if !optional {
			require.Contains(t, l, name, "%v", l)
		}
	}
	for key := range l {
		require.Contains(t, allowed, key, "%v", l)
	}
}

const loadJob = `
job: load
flow:
- step: create
  tasklet: {sql: "create table ids (id bigint primary key)"}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {filter: item.id != 3}
    writer: {table: ids}
    skip: {limit: 10, errors: [parse, constraint]}
`

func TestAJobIsToldInRecordsThatTheCatalogDescribes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var text bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(events.New(log))),
			batchtest.WithFaults(batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{2}, Err: errors.New("disk full")}))
		e.File("in.csv", "id\n1\n2\nx\n3\n4\n4\n5\n")
		job := e.File("job.yaml", loadJob)
		first := e.Job(job).Failed("disk full")
		second := e.Job(job).Completed()

		var told []string
		errorsTold := 0
		for _, l := range lines(t, text.Bytes()) {
			described(t, l)
			if l["level"] == "ERROR" && l["error"] != nil {
				errorsTold++
				require.Contains(t, l["error"], "disk full")
			}
			switch l["event"] {
			case "job.started", "job.ended", "step.started", "step.passed", "step.ended":
				word := l["event"].(string)
				if s, ok := l["step"]; ok {
					word += " " + s.(string)
				}
				if s, ok := l["status"]; ok {
					word += " " + s.(string)
				}
				told = append(told, word)
			}
			if l["event"] == "step.ended" && l["step"] == "load" {
				of := first
				if l["execution"] == float64(second.Execution.ID) {
					of = second
				}
				require.EqualValues(t, of.Step("load").Counters.Read, l["read"])
				require.EqualValues(t, of.Step("load").Counters.Write, l["written"])
			}
		}
		require.Equal(t, 1, errorsTold, "an error is told once: %s", text.String())
		require.Equal(t, []string{
			"job.started", "step.started create", "step.ended create COMPLETED", "step.started load", "step.ended load FAILED", "job.ended FAILED",
			"job.started", "step.passed create", "step.started load", "step.ended load COMPLETED", "job.ended COMPLETED",
		}, told)
	})
}

func all() []core.Event {
	failure, now := errors.New("x"), time.Now()
	job := core.JobExecution{ID: 1, JobName: "j", Status: core.StatusUnknown, ExitCode: "UNKNOWN", Error: "x", Gate: "g", StartedAt: now, EndedAt: now.Add(time.Second)}
	step := core.StepExecution{ID: 2, JobExecutionID: 1, JobName: "j", Name: "s", Status: core.StatusFailed, Error: "x", Gate: "g",
		Counters: core.Counters{Read: 1, Filter: 1, Write: 1, ReadSkip: 1, Commit: 1, Rollback: 1}}
	return []core.Event{
		core.JobStarted{Execution: job}, core.JobEnded{Execution: job}, core.StepStarted{Step: step, Kind: "chunk"},
		core.StepPassed{Execution: 1, Step: step}, core.StepPassed{Step: step}, core.StepEnded{Step: step, Kind: "chunk", Err: failure},
		core.ChunkCommitted{Counters: step.Counters}, core.ChunkRolledBack{Err: failure}, core.Retried{Attempt: 1, Err: failure}, core.LogLost{Lines: 1, Err: failure}, core.Decided{}, core.ElementSkipped{},
		core.TasksSubmitted{Tasks: 1}, core.WorkerStarted{Worker: "w"}, core.ServerStarted{Address: "a:1"}, core.TasksSubmitted{Tasks: 1, Warnings: []string{"nobody"}},
		core.GateChecked{Step: "s"}, core.GateChecked{Held: true}, core.StopAsked{}, core.StopFailed{Err: failure}, core.CloseFailed{Err: failure}, core.ListenerFailed{Err: failure},
		core.Transitioned{Answer: core.Applied}, core.Transitioned{Answer: core.Duplicate, Current: core.StatusFailed}, core.Transitioned{Answer: core.Rejected}, core.Transitioned{Answer: core.Rejected, Key: "6f1d", Early: true},
		core.EventDead{Err: failure},
		core.OwnerLost{}, core.EndNotRecorded{Err: failure}, core.ObserverFailed{Err: failure}, core.HeartbeatFailed{Err: failure}, core.SeriesNotStored{Err: failure}, core.ComponentLate{Step: "s", Err: failure}, core.DeciderMissing{Decider: "d", Tasks: 1}, core.LaunchWaits{Reason: "r"},
		core.JobEnded{Execution: job},
	}
}

func TestEveryEventHasItsRecord(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	o := events.New(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	have := map[string]bool{}
	for _, e := range all() {
		have[reflect.TypeOf(e).Name()] = true
		o.Observe(t.Context(), e)
	}
	told := lines(t, text.Bytes())
	require.Len(t, told, len(all()), "one record per event")
	names := map[string]bool{}
	for _, l := range told {
		described(t, l)
		names[l["event"].(string)] = true
	}
	for _, e := range events.Catalog() {
		require.True(t, names[e.Event], e.Event)
	}
	for _, name := range eventTypes(t) {
		require.True(t, have[name], "core.%s has no record", name)
	}
}

func eventTypes(t *testing.T) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", "core", "event.go"), nil, 0)
	require.NoError(t, err)
	for _, d := range f.Decls {
		if m, ok := d.(*ast.FuncDecl); ok && m.Name.Name == "line" && m.Recv != nil {
			names = append(names, m.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

func TestTheModuleAppendsToTheFileOfTheSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := settings.Load(settings.Source{Dir: dir, Environ: []string{"SURFIN_LOG_EVENTS=events.jsonl"}})
	require.NoError(t, err)
	job := filepath.Join(dir, "job.yaml")
	require.NoError(t, os.WriteFile(job, []byte("job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
	for range 2 { // the second run is refused, and appends nothing or something
		app, err := batch.New(t.Context(), s, events.Module())
		require.NoError(t, err)
		if _, err := app.Run(t.Context(), batch.RunRequest{File: job}); err != nil {
			var complete *ports.InstanceCompleteError
			require.ErrorAs(t, err, &complete)
		}
		require.NoError(t, app.Close(t.Context()))
	}
	text, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	var started int
	for _, l := range lines(t, text) {
		described(t, l)
		if l["event"] == "job.started" {
			started++
		}
	}
	require.Equal(t, 1, started)

	s.Log.Events = filepath.Join(dir, "nowhere", "events.jsonl")
	_, err = batch.New(t.Context(), s, events.Module())
	require.ErrorContains(t, err, "log.events")
}

func TestTheGuideShowsTheCatalog(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", "reference", "events.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), events.Table(), "docs/reference/events.md is to have this table")
}
