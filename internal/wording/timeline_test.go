package wording_test

import (
	"fmt"
	"testing"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestCriticalPathsAreOneSentence(t *testing.T) {
	t.Parallel()
	step := func(name string, seconds float64) operator.CriticalStep {
		return operator.CriticalStep{Step: name, ID: core.StepExecutionID(seconds), Duration: seconds}
	}
	parted := step("load", 600)
	parted.Round, parted.Parked = 2, 180
	parted.Part = &operator.CriticalPart{Name: "load:3", Duration: 480, Worker: "east"}
	onHost := step("copy", 60)
	onHost.Part = &operator.CriticalPart{Name: "copy:1", Duration: 30, Process: &operator.Process{Host: "a", PID: 12}}
	var many []operator.CriticalStep
	for i := range 9 {
		s := step(fmt.Sprintf("s%d", i), float64(10*(i+1)))
		many = append(many, s)
	}
	var texts [][2]string
	for _, c := range []struct {
		name string
		path *operator.CriticalPath
	}{
		{"no step", nil},
		{"one step", &operator.CriticalPath{Attempt: 1, Duration: 600, Total: 840, Steps: []operator.CriticalStep{step("load", 600)}}},
		{"a chain that lasts", &operator.CriticalPath{Attempt: 2, Duration: 720, Total: 840, Lasts: true, Steps: []operator.CriticalStep{onHost, parted, step("report", 60)}}},
		{"many", &operator.CriticalPath{Attempt: 1, Duration: 450, Total: 451, Steps: many}},
	} {
		texts = append(texts, [2]string{c.name, wording.CriticalPath(&operator.Timeline{Critical: c.path})})
	}
	for _, s := range []operator.Span{
		{Kind: operator.SpanStep, Status: "COMPLETED"}, {Kind: operator.SpanPart, Lost: true}, {Kind: operator.SpanPart, Returned: true},
		{Kind: operator.SpanWait, Wait: operator.WaitQueued}, {Kind: operator.SpanWait, Wait: operator.WaitParked},
	} {
		texts = append(texts, [2]string{fmt.Sprintf("%s %s", s.Kind, s.Wait), wording.SpanState(&s)})
	}
	texts = append(texts,
		[2]string{"omitted", wording.Omitted(&operator.Timeline{Omitted: 2100})},
		[2]string{"lane", wording.LaneStatuses(&operator.Lane{Statuses: map[string]int{"COMPLETED": 1200, "FAILED": 1}, Lost: 3, Returned: 1})})
	golden(t, "timeline.txt", texts)
}
