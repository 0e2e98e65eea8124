package repository

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// attempts implements ports.Attempts.
type attempts struct{ store *store }

// OpenAttempts implements ports.Attempts with one statement, over the index of the
// instance's executions.
func (r *attempts) OpenAttempts(ctx context.Context, instance core.JobInstanceID, step string, first, before core.StepExecutionID) (string, []core.Owner, error) {
	var rows []struct{ UID, Instance, Owner string }
	err := r.store.scan(ctx, &rows, "SELECT r.uid, COALESCE("+instanceUID+`, '') AS instance, COALESCE(a.owner, '') AS owner
		FROM {repository} r LEFT JOIN {job_instance} i ON i.id = ? LEFT JOIN (
		SELECT DISTINCT s.owner FROM {job_execution} e JOIN {step_execution} s ON s.job_execution_id = e.id
		WHERE e.instance_id = ? AND s.name = ? AND s.id >= ? AND s.id < ? AND NOT s.closed) a ON TRUE`,
		instance, instance, step, first, before)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read the attempts of step %s before step execution %d: %w", step, before, err)
	case len(rows) == 0:
		return "", nil, fmt.Errorf("the repository has no identity")
	}
	var owners []core.Owner
	for _, row := range rows {
		if row.Owner != "" {
			owners = append(owners, ports.ParseOwner(row.Owner))
		}
	}
	return scopeOf(rows[0].UID, rows[0].Instance), owners, nil
}

// LeftBy implements ports.Attempts with one statement, over the index of the instance's executions.
func (r *attempts) LeftBy(ctx context.Context, instance core.JobInstanceID, step string, before core.StepExecutionID) ([]item.Position, error) {
	left, err := r.store.ofEarlier(ctx, "e.instance_id = ? AND s.name = ? AND s.id < ?", instance, step, before)
	if err != nil {
		return nil, fmt.Errorf("read the positions of step %s before step execution %d: %w", step, before, err)
	}
	positions := make([]item.Position, len(left))
	for i, of := range left {
		positions[i] = of.Position
	}
	return positions, nil
}

// completedPosition is the condition that step s of execution e completed with a position, in an
// instance that is complete.
const completedPosition = `s.status = 'COMPLETED' AND s.position <> '' AND e.redrive_of IS NULL
	AND EXISTS (SELECT 1 FROM {job_execution} c WHERE c.instance_id = e.instance_id AND c.status = 'COMPLETED')`

// LastCompleted implements ports.Attempts with one statement.
func (r *attempts) LastCompleted(ctx context.Context, job, step string, before core.JobInstanceID) (item.Position, error) {
	var rows []struct{ Position string }
	err := r.store.scan(ctx, &rows, `SELECT position FROM (SELECT * FROM (
			SELECT e.instance_id, s.id, s.position FROM {job_execution} e JOIN {step_execution} s ON s.job_execution_id = e.id
			WHERE e.job_name = ? AND e.instance_id < ? AND s.name = ? AND `+completedPosition+`
			ORDER BY e.instance_id DESC, s.id DESC LIMIT 1) kept
		UNION ALL SELECT instance_id, 0, position FROM {purged_position} WHERE job_name = ? AND step = ? AND instance_id < ?) known
		ORDER BY instance_id DESC, id DESC LIMIT 1`, job, before, step, job, step, before)
	if err != nil {
		return nil, fmt.Errorf("read where step %s of the last complete instance of job %s ended: %w", step, job, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return item.Position(rows[0].Position), nil
}

// Newest implements ports.Attempts with one statement.
func (r *attempts) Newest(ctx context.Context, instance core.JobInstanceID, step string) ([]core.StepExecution, error) {
	prefix := step + ":"
	records, err := r.store.steps(ctx, r.store.sql("job_execution_id IN (SELECT id FROM {job_execution} WHERE instance_id = ? AND redrive_of IS NULL)"+
		" AND (name = ? OR SUBSTR(name, 1, ?) = ?)"), instance, step, utf8.RuneCountInString(prefix), prefix)
	if err != nil {
		return nil, fmt.Errorf("read the executions of step %s of job instance %d: %w", step, instance, err)
	}
	newest, of := map[string]core.StepExecution{}, []string{}
	for _, record := range records { // by id
		if _, known := newest[record.Name]; !known && record.Name != step {
			of = append(of, record.Name)
		}
		newest[record.Name] = record
	}
	whole, has := newest[step]
	if !has {
		return nil, nil
	}
	found := []core.StepExecution{whole}
	for _, name := range of {
		if part := newest[name]; part.ID >= whole.First {
			found = append(found, part)
		}
	}
	slices.SortFunc(found[1:], func(a, b core.StepExecution) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// LeftBehind implements ports.Attempts with one statement, and a second one if the first finds rows.
func (r *attempts) LeftBehind(ctx context.Context, instance core.JobInstanceID) ([]ports.LeftBehind, error) {
	left, err := r.store.ofEarlier(ctx, "e.instance_id = ?", instance)
	if err != nil {
		return nil, fmt.Errorf("read the results of earlier steps of job instance %d: %w", instance, err)
	}
	return left, nil
}

func (s *store) ofEarlier(ctx context.Context, condition string, args ...any) ([]ports.LeftBehind, error) {
	var rows []struct {
		InstanceID core.JobInstanceID
		Name       string
		ID         core.StepExecutionID
		Position   string
		Instance   string
	}
	err := s.scan(ctx, &rows, "SELECT e.instance_id, s.name, s.id, s.position, "+instanceUID+` AS instance
		FROM {job_execution} e JOIN {step_execution} s ON s.job_execution_id = e.id JOIN {job_instance} i ON i.id = e.instance_id
		WHERE `+condition+` AND s.status <> 'COMPLETED' AND s.position <> ''`, args...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	uid, err := s.identity(ctx)
	if err != nil {
		return nil, err
	}
	left := make([]ports.LeftBehind, len(rows))
	for i, row := range rows {
		left[i] = ports.LeftBehind{
			Attempt:  core.Attempt{Repository: scopeOf(uid, row.Instance), Instance: row.InstanceID, Step: row.Name, ID: row.ID},
			Position: item.Position(row.Position),
		}
	}
	return left, nil
}
