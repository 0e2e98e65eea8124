package repository

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// SkipsLeft implements ports.Attention with one statement per batchSize ids.
func (r *attention) SkipsLeft(ctx context.Context, most int, ids ...core.JobExecutionID) (map[core.JobExecutionID]ports.SkipsLeft, error) {
	left := map[core.JobExecutionID]ports.SkipsLeft{}
	if len(ids) == 0 {
		return left, nil
	}
	var rows []struct {
		ID   core.JobExecutionID
		Text string
	}
	counts := gormtx.Few(r.store.db.Dialect(), "count(*) || ' ' || COALESCE(sum(CASE WHEN phase = 'read' THEN 0 ELSE 1 END), 0)", "k.phase",
		" FROM {skipped_item} k WHERE k.job_execution_id = e.id AND k.redriven_by IS NULL", "")
	err := r.store.scan(ctx, &rows, "SELECT e.id, "+counts+" AS text FROM {job_execution} e WHERE e.id {among}", most, listed(ids))
	if err != nil {
		return nil, fmt.Errorf("count the skipped items that are left: %w", err)
	}
	for _, row := range rows {
		count, items, _ := strings.Cut(row.Text, " ")
		var l ports.SkipsLeft
		if l.Count, err = strconv.Atoi(count); err == nil {
			l.Items, err = strconv.Atoi(items)
		}
		if err != nil {
			return nil, fmt.Errorf("count the skipped items of execution %d: %w", row.ID, err)
		}
		l.Count, l.Items = min(l.Count, most), min(l.Items, most)
		if l.Count > 0 {
			left[row.ID] = l
		}
	}
	return left, nil
}

// EndedSince implements ports.Attention with one statement over the index of ends.
func (r *attention) EndedSince(ctx context.Context, from time.Time, most int) (ports.EndedCounts, error) {
	counts := ports.EndedCounts{Statuses: map[core.Status]int{}}
	var rows []struct {
		Status core.Status
		N      int
		Since  instant
	}
	err := r.store.scan(ctx, &rows, `SELECT status, count(*) AS n, min(ended_at) AS since FROM
		(SELECT status, ended_at FROM {job_execution} WHERE ended_at >= ? ORDER BY ended_at DESC LIMIT ?) AS ended GROUP BY status`, instant{Time: from}, most)
	if err != nil {
		return counts, fmt.Errorf("count the executions that ended since %s: %w", from.Format(time.RFC3339), err)
	}
	for _, row := range rows {
		counts.Statuses[row.Status] = row.N
		if counts.Since.IsZero() || row.Since.Before(counts.Since) {
			counts.Since = row.Since.Time
		}
	}
	return counts, nil
}

// DeadTopics implements ports.Attention with one statement over the index of dead events.
func (r *attention) DeadTopics(ctx context.Context, most int) ([]ports.DeadTopic, error) {
	var rows []struct {
		Topic string
		Count int
		Since instant
	}
	err := r.store.scan(ctx, &rows, `SELECT topic, count(*) AS count, min(dead_at) AS since FROM
		(SELECT topic, dead_at FROM {event} WHERE dead_at IS NOT NULL ORDER BY topic LIMIT ?) AS dead GROUP BY topic ORDER BY topic`, most)
	if err != nil {
		return nil, fmt.Errorf("count dead events: %w", err)
	}
	topics := make([]ports.DeadTopic, len(rows))
	for i, row := range rows {
		topics[i] = ports.DeadTopic{Topic: row.Topic, Count: row.Count, Since: row.Since.Time}
	}
	return topics, nil
}

// LeftOut implements ports.Attention with one statement over the newest acts.
func (r *attention) LeftOut(ctx context.Context, since time.Time) ([]ports.Act, error) {
	var rows []struct {
		ID              int64
		At              instant
		JobName, Detail string
	}
	err := r.store.scan(ctx, &rows, `SELECT id, at, job_name, detail FROM
		(SELECT id, at, verb, job_name, detail FROM {audit} WHERE verb <> '' AND at >= ? ORDER BY at DESC, id DESC LIMIT ?) AS acts
		WHERE verb = ? ORDER BY at DESC, id DESC`, instant{Time: since}, searchedActs, actLeaveOut)
	if err != nil {
		return nil, fmt.Errorf("list the scheduled times that were left out: %w", err)
	}
	acts := make([]ports.Act, len(rows))
	for i, row := range rows {
		acts[i] = ports.Act{ID: 2 * row.ID, At: row.At.Time, Verb: ports.VerbLeaveOut, JobName: row.JobName, Detail: strings.TrimPrefix(row.Detail, row.JobName+": ")}
	}
	return acts, nil
}

// WaitingRuns implements ports.Attention with one statement over the open tasks.
func (r *figures) WaitingRuns(ctx context.Context) (now time.Time, waiting map[int64]time.Time, err error) {
	waiting = map[int64]time.Time{}
	if now, err = r.readWaitingRuns(ctx, waiting); err != nil {
		return now, nil, fmt.Errorf("read the scheduled runs that wait: %w", err)
	}
	return now, waiting, nil
}
