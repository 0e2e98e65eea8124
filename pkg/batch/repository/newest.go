package repository

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// newestExecution is the newest execution of an instance with the state of its lease and its steps.
type newestExecution struct {
	Row        jobExecution `gorm:"embedded"`
	Params     string       // as in executionRow; empty if not selected
	Expired    bool         // the lease has expired
	Uncertain  bool         // the outcome of a step is unknown, and no checkpoint determines it
	Unsettled  bool         // only if settledColumn is read: the outcome of a step is unknown, but a checkpoint determines it
	Settles    bool         // the execution's outcome is known once the outcomes of those steps are
	Unfinished int64        // unfinished steps; as of the query, so only a hint if it waited for a lock

	// Open work that a parked execution waits for.
	OpenPartsSum, OpenTasks, OpenChildren int64
}

// judgedColumns are the additional columns of a newestExecution. For many executions at once
// PostgreSQL would evaluate an EXISTS by reading all steps.
const (
	judgedColumns = stateColumns + ", " + unfinished + " AS unfinished, " + uncertain + " AS uncertain"
	stateColumns  = `, lease_until <= {now} AS expired, ` + waitsFor + `, status = 'UNKNOWN' AND last_move = 'lose_commit' AS settles`
	unfinished    = `(SELECT COUNT(*) FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.` + openStep + `)`
	uncertain     = `(SELECT COUNT(*) FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.status = 'UNKNOWN' AND s.last_move <> 'lose_commit') > 0`
)

// listedColumns are judgedColumns for a list: an execution that completed has its status as the reason, whatever its steps are.
const listedColumns = stateColumns + `, CASE WHEN status = 'COMPLETED' THEN 0 ELSE ` + unfinished + ` END AS unfinished,
	CASE WHEN status = 'COMPLETED' THEN false ELSE ` + uncertain + ` END AS uncertain`

// settledColumn is for a launch: lists of executions do not pay for it.
const settledColumn = `, (SELECT COUNT(*) FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.status = 'UNKNOWN' AND s.last_move = 'lose_commit') > 0 AS unsettled`

func (r *explorer) newest(query *gorm.DB) (*newestExecution, error) {
	var found []newestExecution
	err := query.Model(&jobExecution{}).
		Select(r.store.columns(&jobExecution{}) + r.store.sql(", "+paramsColumn+judgedColumns+settledColumn)).
		Order("id DESC").Limit(1).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func (r *explorer) active(ctx context.Context, req ports.LaunchRequest) (*jobExecution, error) {
	var rows []jobExecution
	err := gormtx.Find(r.ofInstance(ctx, req.JobName, req.Params.Key()).Where("active = 1"), &rows)
	if err != nil {
		return nil, fmt.Errorf("read the running execution: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// attempt returns the state that a launch judges. exec is the record of the row.
func (s *newestExecution) attempt(exec core.JobExecution, dead func(core.Owner) bool) ports.NewestAttempt {
	runs := s.Row.Status.IsRunning() && !s.Row.isParked()
	return ports.NewestAttempt{
		Execution: exec, Lost: runs && (s.Expired || dead != nil && dead(exec.Owner)),
		Open: s.open(), Uncertain: s.Uncertain, Settles: s.Settles, Unfinished: s.Unfinished,
	}
}

func (s *newestExecution) open() ports.OpenWork {
	return ports.OpenWork{Parts: s.OpenPartsSum, Tasks: s.OpenTasks, Children: s.OpenChildren}
}

// excludes returns why no other execution with the key may run; nil means that this one's owner is
// lost.
func (s *newestExecution) excludes(key core.ExclusiveKey, dead func(core.Owner) bool) error {
	exec := core.JobExecution{Owner: ports.ParseOwner(s.Row.Owner)}
	if s.attempt(exec, dead).Lost {
		return nil
	}
	return &ports.ExclusiveError{JobName: s.Row.JobName, Key: key, Running: *alreadyRunning(&s.Row, s.open())}
}

func alreadyRunning(row *jobExecution, open ports.OpenWork) *ports.AlreadyRunningError {
	return &ports.AlreadyRunningError{
		ExecutionID: row.ID, JobName: row.JobName, Owner: ports.ParseOwner(row.Owner), LeaseUntil: row.LeaseUntil.Time, Parked: row.isParked(), Open: open,
	}
}
