package cli

import (
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// partitions are the step executions of one step's partitions.
type partitions struct {
	step string
	list []core.StepExecution
}

// splitPartitions takes the executions of partitions, which are recorded as
// STEP:PARTITION, out of the list, to the step that they belong to.
func splitPartitions(all []core.StepExecution) ([]core.StepExecution, map[core.StepExecutionID]partitions) {
	owner := map[string]core.StepExecutionID{}
	for _, s := range all {
		owner[s.Name] = s.ID
	}
	var steps []core.StepExecution
	parts := map[core.StepExecutionID]partitions{}
	for _, s := range all {
		step, _, is := strings.Cut(s.Name, ":")
		id, known := owner[step]
		if !is || !known {
			steps = append(steps, s)
			continue
		}
		of := parts[id]
		of.step, of.list = step, append(of.list, s)
		parts[id] = of
	}
	return steps, parts
}

func (ps partitions) counts() map[core.Status]int {
	counts := map[core.Status]int{}
	for _, s := range ps.list {
		counts[s.Status]++
	}
	return counts
}

// failed are the partitions that an operator must look at.
func (ps partitions) failed() []core.StepExecution {
	var list []core.StepExecution
	for _, s := range ps.list {
		if s.Status == core.StatusFailed || s.Status == core.StatusUnknown {
			list = append(list, s)
		}
	}
	return list
}

// mostFailedPartitions is how many failed partitions of a step are listed unasked.
const mostFailedPartitions = 20

// partitionText is the partitions of a step in one line, then those that failed, or
// all of them.
func (p *program) partitionText(ps partitions, e core.JobExecution, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s\n", ps.step, plural(len(ps.list), "partition"), statusCounts(ps.counts()))
	shown, left := ps.list, 0
	if !all {
		shown = ps.failed()
		left = max(0, len(shown)-mostFailedPartitions)
		shown = shown[:len(shown)-left]
	}
	if len(shown) > 0 {
		b.WriteString(stepTable(shown, e.ID, p.now()))
	}
	for _, s := range shown {
		if s.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.Name, oneLine(s.Error))
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "and %d more that failed:  %s\n", left, p.command("show", idText(e.ID), "--partitions"))
	}
	return b.String()
}

// partitionsRecord is the JSON form of a step's partitions.
type partitionsRecord struct {
	Total    int            `json:"total"`
	Statuses map[string]int `json:"statuses"`
	// List has those that failed; with --partitions it has all.
	List []stepRecord `json:"list"`
}

// stepRecords are steps with their partitions; without parts, the list has both.
func (p *program) stepRecords(steps []core.StepExecution, parts map[core.StepExecutionID]partitions, all bool) []stepRecord {
	var records []stepRecord
	for _, s := range steps {
		r := p.stepRecord(s)
		if ps, ok := parts[s.ID]; ok {
			r.Partitions = p.partitionsRecord(ps, all)
		}
		records = append(records, r)
	}
	return records
}

func (p *program) partitionsRecord(ps partitions, all bool) *partitionsRecord {
	r := &partitionsRecord{Total: len(ps.list), Statuses: map[string]int{}, List: []stepRecord{}}
	for status, n := range ps.counts() {
		r.Statuses[string(status)] = n
	}
	shown := ps.list
	if !all {
		shown = ps.failed()
	}
	for _, s := range shown {
		r.List = append(r.List, p.stepRecord(s))
	}
	return r
}
