package repository

import (
	"context"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (s *claimed) identify(ctx context.Context, instance core.JobInstanceID, step string) error {
	var rows []struct{ UID, Instance, InstanceKey string }
	err := s.history.scan(ctx, &rows, "SELECT r.uid, COALESCE("+instanceUID+`, '') AS instance, COALESCE(i.instance_key, '') AS instance_key
		FROM {repository} r LEFT JOIN {job_instance} i ON i.id = ?`, instance)
	switch {
	case err != nil:
		return fmt.Errorf("read the identity of job instance %d: %w", instance, err)
	case len(rows) != 1:
		return fmt.Errorf("the repository has %d identities, but needs one", len(rows))
	}
	s.key = checkpointKey{repository: rows[0].UID, instance: instance, step: step}
	s.identity, s.instanceKey = rows[0].Instance, rows[0].InstanceKey
	return nil
}

// admit refuses a row that this history did not write (rule C18a), and returns the row that counts:
// an empty one if it replaces another instance's row.
func (s *claimed) admit(ctx context.Context, before *checkpoint) (*checkpoint, error) {
	accepts := s.run.Data.AcceptChanges || s.run.Data.Job.AnewSince() != 0
	refused := &ports.RestoredError{Database: s.store.db.Name(), Step: s.key.step, Instance: s.key.instance, Attempt: before.StepExecutionID}
	switch {
	case before.StepExecutionID == 0 || before.Instance != s.identity && before.Position == "": // nothing is committed
		if accepts {
			return &checkpoint{}, nil
		}
		return &checkpoint{}, s.admitNew(ctx, refused)
	case before.Instance == "" && strings.HasPrefix(s.identity, oldIdentity):
		refused.Kind = ports.RestoredOld
	case before.Instance != s.identity:
		refused.Kind = ports.RestoredInstance
	default:
		known, err := s.knows(ctx, before)
		if err != nil || known {
			return before, err
		}
		refused.Kind = ports.RestoredAttempt
	}
	if !accepts {
		return nil, refused
	}
	if refused.Kind == ports.RestoredInstance {
		return &checkpoint{}, nil
	}
	taken := *before
	if s.adopts = s.run.Data.AcceptChanges; refused.Kind == ports.RestoredAttempt {
		taken.StepExecutionID, taken.CountedID = 0, 0 // they name other attempts here
	}
	return &taken, nil
}

// knows reports whether the history has the attempt of a row of this instance. The attempt's number
// may have been given again: then the owner is another, in the same epoch.
func (s *claimed) knows(ctx context.Context, before *checkpoint) (bool, error) {
	if before.StepExecutionID == s.ref.ID { // with a greater epoch it has another owner
		return before.Owner == s.ref.Owner.String() || before.Epoch < s.ref.Epoch, nil
	}
	var known int64
	err := s.history.scan(ctx, &known, `SELECT count(*) FROM {step_execution} s JOIN {job_execution} e ON e.id = s.job_execution_id
		WHERE s.id = ? AND s.name = ? AND e.instance_id = ? AND (s.owner = ? OR s.epoch > ?)`,
		before.StepExecutionID, s.key.step, s.key.instance, before.Owner, before.Epoch>>claimShift)
	if err != nil {
		return false, fmt.Errorf("find step execution %d: %w", before.StepExecutionID, err)
	}
	return known > 0, nil
}

// admitNew looks for a row of the same parameters under a number that this history has not given,
// or has given to another instance.
func (s *claimed) admitNew(ctx context.Context, refused *ports.RestoredError) error {
	var rows []struct {
		InstanceID      core.JobInstanceID
		Instance        string
		StepExecutionID core.StepExecutionID
	}
	err := s.store.scan(ctx, &rows, `SELECT instance_id, instance, step_execution_id FROM {checkpoint}
		WHERE instance_key = ? AND step = ? AND repository = ? AND job_name = ? AND instance <> ? AND position <> ''`,
		s.instanceKey, s.key.step, s.key.repository, s.run.Data.Job.JobName, s.identity)
	if err != nil || len(rows) == 0 {
		return err
	}
	ids := make([]core.JobInstanceID, len(rows))
	for i, row := range rows {
		ids[i] = row.InstanceID
	}
	var given []struct {
		ID  core.JobInstanceID
		UID string
	}
	if err := s.history.scan(ctx, &given, "SELECT i.id, "+instanceUID+" AS uid FROM {job_instance} i WHERE i.id IN ?", ids); err != nil {
		return fmt.Errorf("find earlier instances: %w", err)
	}
	known := map[core.JobInstanceID]string{}
	for _, g := range given {
		known[g.ID] = g.UID
	}
	for _, row := range rows {
		uid, is := known[row.InstanceID]
		if is && uid != row.Instance || !is && row.InstanceID > s.key.instance {
			refused.Kind, refused.Instance, refused.Attempt = ports.RestoredInstance, row.InstanceID, row.StepExecutionID
			return refused
		}
	}
	return nil
}
