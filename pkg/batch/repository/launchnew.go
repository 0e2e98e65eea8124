package repository

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
)

// launchNew launches with one statement if that makes the instance, else it does nothing. Launches that need more are
// left to a transaction.
func (r *launches) launchNew(ctx context.Context, req ports.LaunchRequest) (launched ports.Launched, done bool, err error) {
	needsMore := req.Again || req.RedriveOf != 0 || req.Bound != nil || req.Exclusive != "" || req.ForWorkers || req.Parent != 0 ||
		req.On.Stored() != "" || req.From != nil || req.FromStart || req.Request != (ports.RequestKey{}) || req.Params.FormerKey() != ""
	if !req.New || needsMore || !r.store.alone(ctx) {
		return launched, false, nil
	}
	l := &launch{repo: r, req: req, ledger: &ledger{actor: req.Owner.String()}}
	row, err := l.row()
	if err != nil {
		return launched, false, err
	}
	params, err := paramRows(0, req.Params)
	if err != nil {
		return launched, false, err
	}
	once := &atOnce{store: r.store}
	once.add("made", `INSERT INTO {job_instance} (job_name, instance_key, base_key, attempts, backfilled, local_times, created_at)
		VALUES (?, ?, ?, 1, ?, true, {now}) ON CONFLICT (job_name, instance_key) DO NOTHING RETURNING id`,
		req.JobName, req.Params.Key(), req.Params.BaseKey(), req.Backfill)
	once.add("named", "INSERT INTO {instance_identity} (instance_id, uid) SELECT id, ? FROM made", rand.Text())
	once.insert("launched", &row, "made", map[string]string{"instance_id": "id"}, " RETURNING id, instance_id, lease_until, job_time, created_at")
	for i := range params {
		once.insert("param"+strconv.Itoa(i), &params[i], "launched", map[string]string{"job_execution_id": "id"}, "")
	}
	l.noteLaunch(&row)
	once.insert("noted", &l.ledger.audits[0], "launched", map[string]string{"job_execution_id": "id"}, "")
	var rows []jobExecution
	err = gormtx.Scan(once.statement(ctx, "SELECT * FROM launched"), &rows)
	switch {
	case mustRepeat(err):
		return launched, false, nil
	case err != nil:
		return launched, false, fmt.Errorf("launch job %s: %w", req.JobName, err)
	case len(rows) == 0:
		return launched, false, nil
	}
	row.ID, row.InstanceID, row.LeaseUntil, row.JobTime, row.CreatedAt = rows[0].ID, rows[0].InstanceID, rows[0].LeaseUntil, rows[0].JobTime, rows[0].CreatedAt
	if err := l.launch(&row); err != nil {
		return launched, false, err
	}
	for _, e := range l.ledger.events {
		e.ID = int64(row.ID)
		r.notify(ctx, e)
	}
	return l.launched, true, nil
}
