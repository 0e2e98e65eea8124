package repository

import (
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// openStep selects the unfinished steps. It is literally the text of the partial index, because no
// database matches bind variables with it.
const openStep = "status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING')"

// The columns with which failOpen finds the steps.
const (
	ofJob    = "job_execution_id"
	ofBranch = "branch_id"
)

// ownEpoch is the guard of a step's row: its owner and epoch. The epoch may also be one that the
// owner itself raised, from this very one, without knowing: the reply to its Reclaim was lost (rule
// C10). An epoch that a fence raised does not match: that attempt was abandoned (rule L8).
const ownEpoch = "owner = ? AND (epoch = ? OR last_move = '" + ports.MoveReclaim + "' AND last_epoch = ?)"

// ofFinally is the condition that row s of a partition belongs to a step of `finally`, which a stop
// does not stop (rule L13).
const ofFinally = `(SELECT m.flow FROM {step_execution} m WHERE m.id = s.manager_id) = '` + ports.FlowFinally + `'`

// waits is the condition that a job execution waits for partitions, tasks or child jobs: a parked
// one can be resumed when it is false. None is added while it is parked, so the condition can
// change only once. After a stop request the execution does not wait for a group of tasks: the
// process that resumes it cancels the group.
const waits = `(EXISTS (SELECT 1 FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.status = 'PARKED' AND s.open_parts > 0)
	OR NOT {job_execution}.stop_requested AND EXISTS (SELECT 1 ` + openTasks + `)
	OR EXISTS (SELECT 1 ` + openChildren + `))`

// waitsFor counts those partitions, tasks and child jobs: columns of an openWork. They are counted
// only for an unfinished execution.
const waitsFor = `CASE WHEN active = 1 THEN (SELECT CAST(COALESCE(SUM(s.open_parts), 0) AS bigint) FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.status = 'PARKED') ELSE 0 END AS open_parts_sum,
	CASE WHEN active = 1 THEN (SELECT count(*) ` + openTasks + `) ELSE 0 END AS open_tasks, CASE WHEN active = 1 THEN (SELECT count(*) ` + openChildren + `) ELSE 0 END AS open_children`

// openTasks are the unfinished tasks of the groups that parked steps have submitted. They are found
// by the step and by the group's states, so that no count has to be kept.
const openTasks = `FROM {step_execution} s JOIN {task_group} g ON g.step_execution_id = s.id JOIN {task} t ON t.group_id = g.id
	WHERE s.job_execution_id = {job_execution}.id AND s.status = 'PARKED' AND t.state NOT IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')`

const openChildren = `FROM {job_execution} c WHERE c.parent_id = {job_execution}.id AND c.active = 1`

// placedPart and placedExecution are the conditions that a part s, or an execution, has a placement that the worker of the bind
// variable was not assigned. A request to stop ends placements, but for those of parts of `finally` (rule L13): any worker may
// end the work then.
const (
	placedPart = `(EXISTS (SELECT 1 FROM {placement} p WHERE p.part_id = s.id AND NOT (p.state = 'ASSIGNED' AND p.worker = ?))
		AND (NOT (SELECT stop_requested FROM {job_execution} WHERE id = s.job_execution_id) OR ` + ofFinally + `))`
	placedExecution = `(NOT {job_execution}.stop_requested AND EXISTS (SELECT 1 FROM {placement} p WHERE p.child_id = {job_execution}.id AND NOT (p.state = 'ASSIGNED' AND p.worker = ?)))`
)

// running are the states in which an owner holds a lease: the states that can fail.
func running() []core.Status { return ports.MoveTo(core.StatusFailed).From }

// conditions belong to a filter, joined by AND.
type conditions struct {
	texts []string
	args  []any
}

func (c *conditions) add(holds bool, text string, args ...any) {
	if holds {
		c.texts, c.args = append(c.texts, text), append(c.args, args...)
	}
}

func (c *conditions) text() string { return strings.Join(c.texts, " AND ") }

// either joins them by OR.
func (c *conditions) either() string { return "(" + strings.Join(c.texts, " OR ") + ")" }

// ofExecutionAfter selects the rows of an execution after a key, for its ID, the key, and its ID again; the order is
// job_execution_id, id. With an equality PostgreSQL may read the rows of other executions, by the primary key.
func ofExecutionAfter(table string) string {
	return "(" + table + ".job_execution_id, " + table + ".id) > (?, ?) AND " + table + ".job_execution_id <= ?"
}
