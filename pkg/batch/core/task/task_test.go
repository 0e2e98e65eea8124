package task_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestATypeIsGivenElseHintedElseOfTheGroup(t *testing.T) {
	t.Parallel()
	hint := json.RawMessage(`{"type": "http_request"}`)
	require.Equal(t, "shell", task.Spec{Type: "shell", Hints: task.Hints{SeedActionHint: hint}}.TypeOr("other"))
	require.Equal(t, "http_request", task.Spec{Hints: task.Hints{SeedActionHint: hint}}.TypeOr("other"))
	require.Equal(t, "other", task.Spec{Hints: task.Hints{SeedActionHint: json.RawMessage(`[1]`)}}.TypeOr("other"))
}

func TestASpecThatCannotBeStoredIsRefusedWithEveryReason(t *testing.T) {
	t.Parallel()
	err := task.Spec{
		Payload: json.RawMessage(`{`), Hints: task.Hints{Goal: json.RawMessage(strings.Repeat(" ", 1<<20) + "1")}, Priority: 5, Delay: -1,
		Timeout: -1, Title: "a\x00", IdempotencyKey: strings.Repeat("k", 201),
	}.Check()
	for _, part := range []string{"type: the task has none", "payload: it is not JSON", "goal: it has 1048577 bytes", "priority: it is 5 (allowed: 1",
		"delay", "timeout", "title", "idempotency_key: it has 201 bytes, more than the allowed 200"} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorContains(t, task.Spec{Type: "x", Key: strings.Repeat("k", 201)}.Check(), "key: it has 201 bytes")
	require.ErrorContains(t, task.Spec{Type: "x", After: []string{"a\x00"}}.Check(), "after:")
	require.NoError(t, task.Spec{Type: "x"}.Check())
	latin := json.RawMessage("\"\xff\"") // which PostgreSQL refuses, like a NUL
	require.ErrorContains(t, task.Spec{Type: "x", Payload: latin}.Check(), "payload: it is not JSON in UTF-8")
	require.ErrorContains(t, task.Success().WithArtifact(task.JSON(latin)).Check(), "artifact 0: its value is not JSON in UTF-8")
	require.ErrorContains(t, task.Failure("no").WithRetryHint(latin).Check(), "retry_hint: it is not JSON in UTF-8")
}

func TestAnArtifactIsATaggedValue(t *testing.T) {
	t.Parallel()
	for text, a := range map[string]task.Artifact{
		`{"kind":"Stdout","value":"a\nb"}`:       task.Stdout("a\nb"),
		`{"kind":"Stderr","value":""}`:           task.Stderr(""),
		`{"kind":"FilePath","value":"/x"}`:       task.FilePath("/x"),
		`{"kind":"Url","value":"https://x.y"}`:   task.URL("https://x.y"),
		`{"kind":"Json","value":{"a":[1,null]}}`: task.JSON(json.RawMessage(`{"a":[1,null]}`)),
	} {
		data, err := json.Marshal(a)
		require.NoError(t, err)
		require.JSONEq(t, text, string(data))
		var back task.Artifact
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, a, back)
	}
	var a task.Artifact
	require.ErrorContains(t, json.Unmarshal([]byte(`{"kind":"Film","value":"x"}`), &a), `its kind is "Film"`)
	_, err := json.Marshal(task.JSON(json.RawMessage(`{`)))
	require.ErrorContains(t, err, "not JSON")
}

func TestBackoffDoublesIsCappedAndHonoursTheHint(t *testing.T) {
	t.Parallel()
	decide := func(attempts int, o task.Outcome) task.Decision {
		return task.Backoff{Max: 10 * time.Second, Jitter: -1}.Decide(task.Case{Outcome: o, Budget: task.Budget{MaxAttempts: 100}.Filled(), Spent: task.Spent{Attempts: attempts}})
	}
	for attempts, want := range []time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 40: 10} {
		if want != 0 {
			require.Equal(t, want*time.Second, decide(attempts, task.Failure("x")).Delay)
		}
	}
	require.Equal(t, 1500*time.Millisecond, decide(1, task.Failure("x").WithRetryHint(json.RawMessage(`{"backoff_ms": 1500}`))).Delay)
	require.Equal(t, 2*time.Second, decide(1, task.Blocked("x").WithRetryHint(json.RawMessage(`{"delay_ms": 2000}`))).Delay)
	require.Equal(t, 10*time.Second, decide(1, task.Failure("x").WithRetryHint(json.RawMessage(`{"delay_ms": 1e300}`))).Delay)
	require.Equal(t, time.Second, decide(1, task.Failure("x").WithRetryHint(json.RawMessage(`"soon"`))).Delay)
}

func TestNoDeciderExceedsTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := task.Case{
			Outcome: task.Outcome{Kind: task.OutcomeFailure, Fatal: rapid.Bool().Draw(t, "fatal")},
			Budget:  task.Budget{MaxAttempts: rapid.IntRange(0, 4).Draw(t, "most"), MaxTotalAttempts: rapid.IntRange(0, 4).Draw(t, "total"), MaxNoProgress: rapid.IntRange(0, 4).Draw(t, "stuck")},
			Spent: task.Spent{
				Attempts: rapid.IntRange(1, 6).Draw(t, "attempts"), TotalAttempts: rapid.IntRange(1, 6).Draw(t, "all"),
				NoProgress: rapid.IntRange(0, 60).Draw(t, "failed"), Overdue: rapid.Bool().Draw(t, "overdue"),
			},
			Random: rapid.Float64Range(0, 1).Draw(t, "random"),
		}
		within := c.Budget.Exhausted(c.Spent) == "" && !c.Outcome.Fatal
		said := task.Retry(time.Duration(rapid.Int64().Draw(t, "delay")), "again").Within(c)
		own := task.Backoff{}.Decide(c)
		if said.Dead == within || own.Dead == within {
			t.Fatalf("within %v: %v, %v", within, said, own)
		}
		if own.Delay < 0 || own.Delay > 5*time.Minute || said.Delay < 0 {
			t.Fatalf("delays %v %v", own.Delay, said.Delay)
		}
	})
}

func TestABudgetSaysWhyItIsUsedUp(t *testing.T) {
	t.Parallel()
	b := task.Budget{MaxAttempts: 3, MaxTotalAttempts: 10, Deadline: time.Minute, MaxNoProgress: 4}
	require.Empty(t, b.Exhausted(task.Spent{Attempts: 2, TotalAttempts: 9, NoProgress: 3}))
	require.Contains(t, b.Exhausted(task.Spent{Attempts: 3}), "max_attempts 3")
	require.Contains(t, b.Exhausted(task.Spent{TotalAttempts: 10}), "max_total_attempts 10")
	require.Contains(t, b.Exhausted(task.Spent{NoProgress: 4}), "max_no_progress 4")
	require.Contains(t, b.Exhausted(task.Spent{Overdue: true}), "deadline of 1m0s")
	require.Contains(t, task.Budget{}.Exhausted(task.Spent{Attempts: 5, NoProgress: math.MaxInt32}), "max_attempts 5")
	require.ErrorContains(t, task.Budget{MaxAttempts: -1}.Check(), "max_attempts is negative")
}
