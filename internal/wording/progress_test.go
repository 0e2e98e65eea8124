package wording_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestProgressIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	percent, left := 80.4, 90.0
	running := operator.ProgressView{Execution: 2, JobName: "load", Status: core.StatusStarted, Step: "copy", Read: 12_000, Written: 8, PerSecond: 4}
	var texts [][2]string
	add := func(name string, change func(p *operator.ProgressView)) {
		p := running
		change(&p)
		texts = append(texts, [2]string{name, wording.Commands{}.Progress(&p)})
	}
	add("workers", func(*operator.ProgressView) {})
	add("a process that stops", func(p *operator.ProgressView) {
		p.Percent, p.Left, p.StopRequested, p.Owner = &percent, &left, true, &operator.Owner{Host: "here", PID: 7}
	})
	add("a dead owner", func(p *operator.ProgressView) {
		p.Owner = &operator.Owner{Host: "here", PID: 7, Dead: true, Lost: true}
	})
	add("an owner that is lost", func(p *operator.ProgressView) { p.Owner = &operator.Owner{Host: "here", PID: 7, Lost: true} })
	add("partitions that wait", func(p *operator.ProgressView) {
		p.Partitions, p.PartitionsDone = 3, 1
		p.Placed = []operator.PlacedWork{{Names: []string{"copy:a"}, Count: 2, Waits: "no live worker has these labels"}}
	})
	add("tasks", func(p *operator.ProgressView) { p.Tasks = &operator.StepTasks{States: map[string]int{"RUNNING": 1}} })
	add("a child job", func(p *operator.ProgressView) { p.Child, p.ChildStatus = 3, core.StatusStarted })
	add("no step", func(p *operator.ProgressView) { p.Step, p.Status = "", core.StatusUnknown })
	golden(t, "progress.txt", texts)

	require.Equal(t, []string{"warning: slow", "took its new definition, as nothing was committed by the old one"},
		wording.StepNotes(&operator.StepView{Warnings: []string{"slow"}, NewDefinition: true}))
	require.Equal(t, "job", wording.About(&operator.AuditView{}))
	require.Equal(t, "step execution 4", wording.About(&operator.AuditView{Step: 4}))
	require.Equal(t, "copy", wording.About(&operator.AuditView{Step: 4, StepName: "copy"}))
}
