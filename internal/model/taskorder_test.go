package model_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestTasksAreNamedByTheirKeysElseByTheirIdempotencyKeys(t *testing.T) {
	t.Parallel()
	order, err := model.TaskOrder(task.Submission{Tasks: []task.Spec{
		{Key: "last", After: []string{"b", "a", "b"}}, {Key: "a", IdempotencyKey: "z"}, {IdempotencyKey: "b"}, {IdempotencyKey: "a"},
	}})
	require.NoError(t, err)
	require.Equal(t, [][]int{{1, 2}, nil, nil, nil}, order)
	order, err = model.TaskOrder(task.Submission{Tasks: []task.Spec{{Key: "a"}, {}}})
	require.NoError(t, err)
	require.Nil(t, order, "no task waits")
}

func TestAnOrderThatCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tasks []task.Spec
		want  []string
	}{
		{[]task.Spec{{Key: "a", After: []string{"b"}}, {}}, []string{`tasks[0]: after: no task of the group has the key "b"`, `(known: "a")`}},
		{[]task.Spec{{After: []string{"b"}}}, []string{`(none has one)`}},
		{[]task.Spec{{Key: "a"}, {Key: "a"}, {After: []string{"c", "a"}}}, []string{`tasks[1]: key: "a" is already the key of tasks[0]`, `tasks[2]: after: no task of the group has the key "c"`}},
		{[]task.Spec{{Key: "a", After: []string{"a"}}}, []string{`tasks[0]: after: "a" is the task itself`}},
		{
			[]task.Spec{{Key: "x", After: []string{"a"}}, {Key: "a", After: []string{"c"}}, {Key: "b", After: []string{"a"}}, {Key: "c", After: []string{"b"}}},
			[]string{`tasks[1]: after: the tasks wait for each other in a cycle: "a" after "c" after "b" after "a"`},
		},
	} {
		_, err := model.TaskOrder(task.Submission{Tasks: c.tasks})
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestEveryCycleIsFoundAndNoOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "tasks")
		sub := task.Submission{Tasks: make([]task.Spec, n)}
		reached := make([]map[int]bool, n)
		for i := range n {
			sub.Tasks[i].Key = fmt.Sprint(i)
			reached[i] = map[int]bool{}
			for j := range i {
				if rapid.IntRange(1, 3).Draw(t, "waits") == 1 {
					sub.Tasks[i].After = append(sub.Tasks[i].After, fmt.Sprint(j))
					reached[i][j] = true
					for k := range reached[j] {
						reached[i][k] = true
					}
				}
			}
		}
		if _, err := model.TaskOrder(sub); err != nil {
			t.Fatalf("no cycle: %v", err)
		}
		from := rapid.IntRange(0, n-2).Draw(t, "from")
		to := rapid.IntRange(from+1, n-1).Draw(t, "to")
		sub.Tasks[from].After = append(sub.Tasks[from].After, fmt.Sprint(to))
		if _, err := model.TaskOrder(sub); (err != nil) != reached[to][from] {
			t.Fatalf("%d waits for %d: %v", from, to, err)
		}
	})
}
