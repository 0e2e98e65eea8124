package tasks_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestEveryMoveRaisesTheVersionAndAHeartbeatDoesNot(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		version := func() int64 {
			got, err := s.Task(s.Context(), d.ID)
			require.NoError(s, err)
			return got.Version
		}
		before := version()
		c := s.claim(d, worker("a"))
		require.Equal(s, before+1, version())
		_, err := s.Heartbeat(s.Context(), worker("a"), []taskports.Ref{c.Ref})
		require.NoError(s, err)
		require.Equal(s, before+1, version())
		s.end(c.Ref, task.Failure("no"))
		require.Equal(s, before+2, version())
		s.again()
		require.Equal(s, before+3, version())
		_, err = s.End(s.Context(), c.Ref, task.Failure("no"), decide)
		require.ErrorIs(s, err, core.ErrLostOwner)
		require.Equal(s, before+3, version(), "what is not applied changes nothing")
	})
}

func TestAScheduledTimeHasOneTask(t *testing.T) {
	each(t, func(s *scene) {
		at := func(key string) task.Submission {
			return task.Submission{Tasks: []task.Spec{{Type: "work", Origin: task.Origin{JobDefinition: 7, ScheduledFor: key}}}}
		}
		s.submit(at("2026-11-22T02:30"))
		_, _, err := s.Submit(s.Context(), at("2026-11-22T02:30"))
		require.ErrorIs(s, err, taskports.ErrOtherSubmission)
		twice := at("2026-11-24T02:30")
		twice.Tasks = append(twice.Tasks, twice.Tasks[0])
		_, _, err = s.Submit(s.Context(), twice)
		require.ErrorIs(s, err, taskports.ErrOtherSubmission)
		same := task.Spec{Type: "work", IdempotencyKey: "k"}
		_, _, err = s.Submit(s.Context(), task.Submission{Tasks: []task.Spec{same, same}})
		require.ErrorIs(s, err, taskports.ErrOtherSubmission)
		s.submit(at("2026-11-23T02:30"))
		list, err := s.Tasks(s.Context(), task.Filter{})
		require.NoError(s, err)
		require.Len(s, list, 2)
	})
}

func TestOfManyWorkersOneHasTheRightToStart(t *testing.T) {
	each(t, func(s *scene) {
		d := s.placed(task.Spec{})
		s.assign(d, "c", s.lead())
		var started atomic.Int32
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				c, _, err := s.Start(context.WithoutCancel(s.Context()), d, worker(name))
				if err == nil && c != nil {
					started.Add(1)
					if name != "c" {
						s.Errorf("%s has started it", name)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(s, 1, started.Load())
		attempts, err := s.Attempts(s.Context(), d.ID)
		require.NoError(s, err)
		require.Len(s, attempts, 1)
	})
}

func TestTheIndexesOfTheSourcesAreThere(t *testing.T) {
	each(t, func(s *scene) {
		query := "select indexdef from pg_indexes where tablename like 'surfin\\_%'"
		if s.db.Dialect() == tx.SQLite {
			query = "select sql from sqlite_master where type = 'index' and sql is not null union all select sql from sqlite_master where type = 'table'"
		}
		if s.db.Dialect() == tx.MySQL {
			query = `select concat(case when min(non_unique) = 0 then 'create unique index ' else 'create index ' end, index_name, ' on x (', group_concat(column_name order by seq_in_index separator ', '), ')')
				from information_schema.statistics where table_schema = database() group by table_name, index_name`
		}
		rows, err := s.db.Conn().QueryContext(s.Context(), query)
		require.NoError(s, err)
		defer rows.Close()
		var all string
		for rows.Next() {
			var text string
			require.NoError(s, rows.Scan(&text))
			all += text + "\n"
		}
		require.NoError(s, rows.Err())
		for _, pattern := range []string{
			`task_held"? .*\(worker, state\)`, `task_created"? .*\(created_at\)`, `event_open"? .*\(processed_at, created_at\)`,
			`(?i)unique.*\(job_definition_id, scheduled_for\)`, `(?i)(unique.*\(dedupe_key\)|dedupe_key +text not null unique)`, `task_group_state"? .*\(group_id, state\)`,
		} {
			require.Regexp(s, pattern, all)
		}
		require.NotRegexp(s, `(?i)create (unique )?index.*(lease_until|confirm_until|heartbeat_at)`, all)
	})
}
