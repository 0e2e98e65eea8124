package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// OpenAttempts implements core.Attempts with one statement, over the index of the
// instance's executions.
func (r *Repository) OpenAttempts(ctx context.Context, instance core.JobInstanceID, step string, first, before core.StepExecutionID) (string, []core.Owner, error) {
	var rows []struct{ UID, Owner string }
	err := r.session(ctx).Raw(r.sql(`SELECT r.uid, COALESCE(a.owner, '') AS owner FROM {repository} r LEFT JOIN (
		SELECT DISTINCT s.owner FROM {job_execution} e JOIN {step_execution} s ON s.job_execution_id = e.id
		WHERE e.instance_id = ? AND s.name = ? AND s.id >= ? AND s.id < ? AND NOT s.closed) a ON TRUE`),
		instance, step, first, before).Scan(&rows).Error
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read the attempts of step %s before step execution %d: %w", step, before, err)
	case len(rows) == 0:
		return "", nil, fmt.Errorf("the repository has no identity")
	}
	var owners []core.Owner
	for _, row := range rows {
		if row.Owner != "" {
			owners = append(owners, core.ParseOwner(row.Owner))
		}
	}
	return rows[0].UID, owners, nil
}
