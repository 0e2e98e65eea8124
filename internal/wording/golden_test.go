package wording_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

var update = flag.Bool("update", false, "write testdata again")

func golden(t *testing.T, name string, texts [][2]string) {
	t.Helper()
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("== " + text[0] + "\n" + strings.TrimRight(text[1], "\n") + "\n\n")
	}
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "read the difference, then go test -update ./internal/wording")
}

func TestExplanationsSayEachStatusCauseAndRefusal(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	owner := &operator.Owner{PID: 12, Host: "a", LeaseUntil: began.Add(time.Minute)}
	base := operator.Explanation{Execution: 7, JobName: "load", Attempt: 2, CreatedAt: began, StartedAt: began, EndedAt: began.Add(time.Hour), Duration: 3600}
	step := operator.StepView{Execution: 7, Step: "copy", Kind: "chunk", Status: core.StatusFailed, Read: 1200, Written: 1199, Skipped: 1, Commits: 2, Position: "line 1201", Undone: 3}
	var texts [][2]string
	add := func(name string, change func(e *operator.Explanation)) {
		e := base
		change(&e)
		texts = append(texts, [2]string{name, strings.Join(wording.Explanation(&e), "\n")})
	}
	for _, status := range core.Statuses() {
		add(string(status), func(e *operator.Explanation) { e.Status, e.Refused = status, refusal.Complete })
	}
	for _, lease := range []operator.Lease{operator.LeaseHeld, operator.LeaseExpired, operator.LeaseDead} {
		add("lease "+string(lease), func(e *operator.Explanation) {
			e.Status, e.Owner, e.Lease, e.Refused = core.StatusStarted, owner, lease, refusal.Running
		})
	}
	for _, kind := range []operator.CauseKind{
		operator.CauseOwnerLost, operator.CauseStopRequested, operator.CauseFlow, operator.CauseGate, operator.CauseError, operator.CauseStep,
	} {
		add("cause "+string(kind), func(e *operator.Explanation) {
			e.Status, e.Steps, e.Refused = core.StatusFailed, []operator.StepView{step}, refusal.NotRestartable
			e.Cause = &operator.Cause{Kind: kind, Step: "copy", Item: "in.csv:1205", Class: "parse", Error: "read: broken", JobError: "the rest is broken", Owner: owner}
		})
	}
	for _, reason := range []operator.Reason{
		refusal.NotNewest, refusal.Running, refusal.Complete, refusal.Exclusive, refusal.Abandoned,
		refusal.Unknown, refusal.NotRestartable, refusal.Changed, refusal.StartLimit,
	} {
		add("refused "+string(reason), func(e *operator.Explanation) {
			e.Status, e.Refused, e.RefusedBy, e.Newest, e.NewestStatus = core.StatusFailed, reason, 9, 8, core.StatusStopped
			if reason == refusal.StartLimit || reason == refusal.Exclusive {
				e.Restart = &operator.RestartPlan{Limit: &operator.StartLimit{Step: "copy", Attempts: 2, Limit: 2}}
			}
		})
	}
	add("plan", func(e *operator.Explanation) {
		e.Status, e.Steps = core.StatusFailed, []operator.StepView{step}
		e.Skipped = []operator.SkipCount{{Step: "copy", Phase: core.PhaseRead, Class: "parse", Count: 5, Left: 2}}
		e.Decisions = []operator.DecisionPath{{Element: "size", Verdict: "big", Target: "split"}, {Element: "late", Verdict: core.ExitNoop}}
		e.Gates = []operator.Gate{{Step: "copy", Gate: "read > 0: holds"}, {Gate: "steps.copy.read > 0: holds"}}
		e.Restart = &operator.RestartPlan{Entries: []operator.PlanEntry{
			{Element: "make", Step: "make", Action: operator.PlanPass},
			{Element: "copy", Step: "copy", Action: operator.PlanResume, From: "line 1201"},
			{Element: "parts", Step: "parts", Action: operator.PlanResume, Partitions: &operator.PlanPartitions{Completed: 3, Again: []operator.PlanPartition{{Name: "4", From: "line 7"}}}},
			{Element: "publish", Step: "publish", Action: operator.PlanRun, Certainty: operator.CertainAfter, Via: []operator.PlanEdge{{From: "copy", On: "COMPLETED"}}},
			{Element: "repair", Step: "repair", Action: operator.PlanRun, Certainty: operator.CertainAfter, Via: []operator.PlanEdge{{From: "copy", On: "FAILED"}}},
			{Element: "clean", Step: "clean", Action: operator.PlanFinally},
		}}
	})
	golden(t, "explanations.txt", texts)
}

func TestDryRunsSayWhatEachStepWouldDo(t *testing.T) {
	t.Parallel()
	var texts [][2]string
	for _, act := range []operator.PlanAct{
		operator.PlanPass, operator.PlanRun, operator.PlanResume, operator.PlanSkip, operator.PlanAsk, operator.PlanStop, operator.PlanLimit, operator.PlanFinally,
	} {
		for _, kind := range []string{"chunk", "tasks", "decision"} {
			s := &operator.DryStep{PlanEntry: operator.PlanEntry{Element: "copy", Step: "copy", Action: act, OnWorkers: act == operator.PlanRun}, Kind: kind}
			if kind == "chunk" {
				s.Reader, s.Processors = &operator.DryEnd{Component: "csv", Target: "in.csv"}, []string{"filter"}
			}
			if act == operator.PlanPass && kind != "decision" {
				s.PassedBy, s.Abandoned = 7, kind == "tasks"
			}
			texts = append(texts, [2]string{string(act) + " " + kind, wording.DryHeadline(s)})
		}
	}
	golden(t, "dryruns.txt", texts)
}
