package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// calendarRuns bounds the executions of all jobs that are read for all values, and valueRuns for one. If
	// there are more, calendarRuns of the job are read.
	valueRuns    = 320
	calendarRuns = 10_000
	// calendarByValue reads the index of values. Joins would tempt PostgreSQL to read the whole tables.
	calendarByValue = `SELECT {key} AS value, (SELECT count(*) FROM (SELECT 1 FROM {job_execution_param} p WHERE p.name = ? AND substr(p.value, 1, 200) = {key} LIMIT ?) AS c) AS n,
		COALESCE((SELECT string_agg(x.id || ' ' || x.run, ',') FROM (SELECT q.id, (SELECT e.instance_id || ' ' || e.status FROM {job_execution} e
				WHERE e.id = q.id AND e.job_name = ? AND e.redrive_of IS NULL) AS run
			FROM (SELECT p.job_execution_id AS id FROM {job_execution_param} p WHERE p.name = ? AND substr(p.value, 1, 200) = {key}
				ORDER BY p.job_execution_id DESC LIMIT ?) AS q) AS x), '') AS runs`
	calendarByJob = `SELECT x.id, x.instance_id, x.status, x.value FROM (SELECT e.id, e.instance_id, e.status, e.redrive_of,
			(SELECT substr(p.value, 1, 200) FROM {job_execution_param} p WHERE p.job_execution_id = e.id AND p.name = ?) AS value
		FROM {job_execution} e WHERE e.job_name = ? ORDER BY e.id DESC LIMIT ?) AS x WHERE x.redrive_of IS NULL AND x.value BETWEEN ? AND ?`
)

// Calendar implements ports.JobHistory with one statement, over the index of values; or with two, if so
// many executions have a value that the job alone may have fewer.
func (r *jobHistory) Calendar(ctx context.Context, filter ports.CalendarFilter) (found ports.Calendar, err error) {
	if len(filter.Values) == 0 {
		return found, nil
	}
	values, err := json.Marshal(filter.Values)
	if err != nil {
		return found, err
	}
	var rows []struct {
		Value string
		N     int
		Runs  string
	}
	most := min(valueRuns, max(1, calendarRuns/len(filter.Values)))
	text, args := gormtx.ForEach(r.store.db.Dialect(), calendarByValue, "v.value", r.store.texts("value")+" AS v", filter.Values, string(values),
		filter.Param, most, filter.JobName, filter.Param, most)
	err = r.store.scan(ctx, &rows, text, args...)
	if err != nil {
		return found, fmt.Errorf("read the calendar of job %s: %w", filter.JobName, err)
	}
	for _, row := range rows {
		found.Runs = append(found.Runs, calendarRefs(row.Value, row.Runs)...)
		if row.N == most {
			found.Unread = append(found.Unread, row.Value)
		}
	}
	if len(found.Unread) > 0 {
		return r.calendarOfJob(ctx, filter, found)
	}
	sortCalendar(found.Runs)
	return found, nil
}

// calendarOfJob reads the newest executions of the job. If these are all, nothing is unread.
func (r *jobHistory) calendarOfJob(ctx context.Context, filter ports.CalendarFilter, found ports.Calendar) (ports.Calendar, error) {
	var rows []struct {
		ID         core.JobExecutionID
		InstanceID core.JobInstanceID
		Status     core.Status
		Value      string
	}
	err := r.store.scan(ctx, &rows, calendarByJob, filter.Param, filter.JobName, calendarRuns, slices.Min(filter.Values), slices.Max(filter.Values))
	if err != nil {
		return found, fmt.Errorf("read the calendar of job %s: %w", filter.JobName, err)
	}
	known := map[core.JobExecutionID]bool{}
	for _, run := range found.Runs {
		known[run.ID] = true
	}
	asked := map[string]bool{}
	for _, value := range filter.Values {
		asked[value] = true
	}
	for _, row := range rows {
		if !known[row.ID] && asked[row.Value] {
			found.Runs = append(found.Runs, ports.CalendarRun{Value: row.Value, ID: row.ID, Instance: row.InstanceID, Status: row.Status})
		}
	}
	sortCalendar(found.Runs)
	var more []core.JobExecutionID
	if err := r.store.scan(ctx, &more, "SELECT id FROM {job_execution} WHERE job_name = ? ORDER BY id DESC LIMIT 1 OFFSET ?", filter.JobName, calendarRuns); err != nil {
		return found, fmt.Errorf("read the calendar of job %s: %w", filter.JobName, err)
	}
	if len(more) == 0 {
		found.Unread = nil
	}
	return found, nil
}

func sortCalendar(runs []ports.CalendarRun) {
	slices.SortFunc(runs, func(a, b ports.CalendarRun) int { return int(b.ID - a.ID) })
}

// calendarRefs reads "12 7 FAILED,11 7 COMPLETED": executions, their instances and statuses.
func calendarRefs(value, text string) (list []ports.CalendarRun) {
	for word := range strings.SplitSeq(text, ",") {
		fields := strings.Fields(word)
		const parts = 3
		if len(fields) != parts {
			continue
		}
		id, _ := strconv.ParseInt(fields[0], 10, 64)       //nolint:errcheck // the statement wrote it
		instance, _ := strconv.ParseInt(fields[1], 10, 64) //nolint:errcheck // as above
		list = append(list, ports.CalendarRun{Value: value, ID: core.JobExecutionID(id), Instance: core.JobInstanceID(instance), Status: core.Status(fields[2])})
	}
	return list
}
