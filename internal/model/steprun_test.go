package model_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func memory(t *testing.T) *core.ExecutionContext {
	t.Helper()
	c := core.NewExecutionContext()
	for key, value := range map[string]any{
		"text": "a", "int": 7, "float": 2.0, "bool": true, "at": time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), "for": 90 * time.Second,
	} {
		require.NoError(t, c.Put(key, value))
	}
	return c
}

func fullStepContext(t *testing.T) model.StepContext {
	t.Helper()
	at := time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC)
	owner := core.Owner{Host: "h", Boot: "b", PID: 7, Start: "s", Nonce: "n"}
	params, err := core.NewParameters(
		core.Parameter{Name: "day", Type: core.TypeDate, Value: row.NewDate(2026, 11, 22), Identifying: true},
		core.Parameter{Name: "rate", Type: core.TypeFloat, Value: 2.0},
		core.Parameter{Name: "n", Type: core.TypeInt, Value: int64(1) << 60},
	)
	require.NoError(t, err)
	counters := core.Counters{Read: 1, Filter: 2, Write: 3, ReadSkip: 4, ProcessSkip: 5, WriteSkip: 6, Commit: 7, Rollback: 8}
	record := core.StepExecution{
		ID: 5, First: 4, JobExecutionID: 3, JobName: "load", Name: "s", Visit: core.Visit{Flow: "f", Ordinal: 1, Element: "s"}, Status: core.StatusFailed, ExitCode: "FAILED", Error: "it broke", Settles: true,
		Counters: counters, Before: counters, InHand: counters, Gate: "read > 0: holds", Position: item.Position(`{"v":1,"items":7}`),
		Context: memory(t), Out: map[string]any{"int": int64(1) << 60, "float": 3.0, "list": []any{int64(1), 1.5, nil, "x"}},
		Owner: owner, Epoch: 2, Manager: 6, Branch: 7, LeaseUntil: at, AssignedFrom: []core.Owner{owner}, Assigned: 1, OpenParts: 2, StartedAt: at, EndedAt: at.Add(time.Second),
	}
	records := map[string]core.StepExecution{"s": record, "none": {}}
	return model.StepContext{
		Name: "s:p1",
		Job: &core.JobExecution{
			ID: 3, InstanceID: 2, JobName: "load", Status: core.StatusStarted, ExitCode: "x", Error: "e", Settles: true, Params: params,
			Definition: core.Definition{Hash: "h", Text: "job: load\n", Path: "/jobs/load.yaml"}, Context: memory(t), Owner: owner, Epoch: 4,
			LeaseUntil: at, StopRequested: true, Attempt: 2, RedriveOf: 1, Parent: 9, ParentCall: 8, Task: 7, Exclusive: "load", FormerTimes: true, Confinement: &core.Confinement{Roots: []string{"/jobs"}, Given: []string{"day"}}, Gate: "g", Time: at, CreatedAt: at, StartedAt: at, EndedAt: at,
		},
		JobRef: ports.JobRef{ID: 3, Owner: owner, Epoch: 4}, Earlier: &record, Steps: records, Last: &record,
		Outcome:       &core.Outcome{Status: core.StatusFailed, ExitCode: "FAILED", Message: "m", Step: "s", Settles: true},
		Part:          &core.Partition{Name: "p1", Index: 1, Context: memory(t)},
		Visit:         core.Visit{Flow: "split#1/2", Ordinal: 3, Element: "s"},
		Before:        []ports.FlowVisit{{Visit: core.Visit{Ordinal: 2, Element: "d"}, Kind: ports.VisitDecision, Verdict: "yes", Target: "t"}},
		AcceptChanges: true, NewDefinition: true,
		Parts: records, Planned: &record, Resumed: true, MayPark: true, Group: &model.Group{Name: "g", Database: "default"},
	}
}

// requireSet checks that no field of a struct is zero, so that the test covers a new field.
func requireSet(t *testing.T, value reflect.Value) {
	t.Helper()
	for i := range value.NumField() {
		if value.Type().Field(i).Name == "Unreadable" { // only in views
			continue
		}
		require.False(t, value.Field(i).IsZero(), "%s.%s", value.Type(), value.Type().Field(i).Name)
	}
}

func TestAStepContextMarshalsToJSONAndBack(t *testing.T) {
	t.Parallel()
	full := fullStepContext(t)
	requireSet(t, reflect.ValueOf(full))
	requireSet(t, reflect.ValueOf(*full.Job))
	requireSet(t, reflect.ValueOf(*full.Earlier))
	for name, want := range map[string]model.StepContext{"full": full, "empty": {}, "no values": {Job: &core.JobExecution{Context: core.NewExecutionContext()}}} {
		data, err := json.Marshal(want)
		require.NoError(t, err, name)
		var got model.StepContext
		require.NoError(t, json.Unmarshal(data, &got), name)
		require.Equal(t, want, got, name)
	}
}

func TestAStepContextOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"Job":{"Context":{"version":2}}}`, `{"Job":{"Context":7}}`,
		`{"Job":{"Params":[{"name":"a","type":"int","value":"x"}]}}`, `{"Job":{"Params":7}}`, `{"Job":{"Params":[{"type":"string"}]}}`, `{"Last":{"Out":7}}`,
	} {
		var got model.StepContext
		require.Error(t, json.Unmarshal([]byte(text), &got), text)
	}
}

func TestTheCloneOfAStepContextSharesNothing(t *testing.T) {
	t.Parallel()
	full := fullStepContext(t)
	own := full.Clone()
	require.Equal(t, full, own)
	require.NoError(t, own.Job.Context.Put("text", "b"))
	require.NoError(t, own.Part.Context.Put("text", "b"))
	require.NoError(t, own.Steps["s"].Context.Put("text", "b"))
	own.Last.Out["int"], own.Planned.Name, own.Outcome.Message, own.Group.Name = 1, "other", "other", "other"
	own.Parts["new"] = core.StepExecution{}
	require.Equal(t, fullStepContext(t), full)
}

func TestFilledServicesDoNothingOrRefuse(t *testing.T) {
	t.Parallel()
	var s model.StepServices
	s.Fill()
	ctx := t.Context()
	s.Observer.Observe(ctx, core.StepPassed{})
	require.False(t, s.Stop.Requested())
	s.Stop.Request()
	require.False(t, s.Stop.Requested())
	require.False(t, s.Owners.IsDead(core.Owner{}))
	ran := make(chan struct{})
	require.NoError(t, s.Spawner.Spawn(func() { close(ran) }))
	<-ran
	var errs []error
	_, err := s.Plans.PlanPartitions(ctx, ports.JobRef{}, ports.PartitionPlan{})
	errs = append(errs, err, s.Plans.BeginStep(ctx, ports.StepRef{}), s.Plans.SaveStepContext(ctx, ports.StepRef{}, nil))
	_, err = s.Plans.EndStep(ctx, ports.StepRef{}, ports.StepChange{})
	errs = append(errs, err)
	_, err = s.Executor.Execute(ctx, nil, nil)
	errs = append(errs, err)
	_, err = s.Jobs.Run(ctx, nil, core.Parameters{}, nil)
	errs = append(errs, err)
	_, _, err = s.Attempts.OpenAttempts(ctx, 0, "", 0, 0)
	errs = append(errs, err)
	_, err = s.Attempts.LeftBy(ctx, 0, "", 0)
	errs = append(errs, err)
	_, err = s.Attempts.LeftBehind(ctx, 0)
	errs = append(errs, err, s.Promoter.Promote(ctx, nil))
	for i, err := range errs {
		require.ErrorIs(t, err, model.ErrNoService, i)
	}

	stop := make(chan struct{})
	signal := model.StopOn(stop)
	close(stop)
	require.True(t, signal.Requested())
	<-signal.Done()
	s.Stop = signal
	s.Fill()
	require.True(t, s.Stop.Requested(), "what is there stays")
}

func TestWhoHasWaitedLongLooksLessOften(t *testing.T) {
	t.Parallel()
	for waited, want := range map[time.Duration]time.Duration{
		0:                      10 * time.Millisecond,
		200 * time.Millisecond: 10 * time.Millisecond,
		2 * time.Second:        100 * time.Millisecond,
		20 * time.Second:       time.Second,
		time.Hour:              time.Second,
	} {
		require.Equal(t, want, model.NextLook(waited, time.Second), waited)
	}
	require.Equal(t, time.Millisecond, model.NextLook(time.Hour, time.Millisecond))
}
