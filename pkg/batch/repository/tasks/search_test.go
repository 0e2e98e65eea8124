package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// searched reads all pages of a search. Without a budget each page ends with its first statement.
func (s *scene) searched(f task.Filter, budget time.Duration) (ids []task.ID, pages int) {
	s.Helper()
	for {
		list, next, err := s.Search(s.Context(), f, budget)
		require.NoError(s, err)
		require.LessOrEqual(s, len(list), f.Limit)
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		if pages++; next == 0 {
			return ids, pages
		}
		require.Less(s, pages, 1000)
		f.Before = next
	}
}

func TestASearchOfTasksFindsEachOnceInPages(t *testing.T) {
	each(t, func(s *scene) {
		const groups, size = 5, 700
		var all []task.Task
		for g := range groups {
			sub := task.Submission{Tasks: make([]task.Spec, size)}
			for i := range sub.Tasks {
				sub.Tasks[i] = task.Spec{Type: []string{"work", "mail"}[i%2], Title: fmt.Sprintf("of <%d> %d%%", g, i), IdempotencyKey: fmt.Sprintf("key_%d.%d", g, i)}
			}
			done, _ := s.submit(sub)
			list, err := s.Tasks(s.Context(), task.Filter{Group: done.Group, Limit: size})
			require.NoError(s, err)
			all = append(list, all...)
		}
		_, _, err := s.Cancel(s.Context(), all[groups*size-3].ID, "ada", "the Reason")
		require.NoError(s, err)
		all[groups*size-3].State, all[groups*size-3].LastError = task.Canceled, "canceled: the Reason"
		middle := all[groups*size/2]
		for i, f := range []task.Filter{
			{}, {Type: "mail"}, {State: task.Canceled}, {Group: middle.GroupID}, {Group: middle.GroupID, Type: "mail", Text: "99%"}, {Group: middle.GroupID + 99},
			{Text: "OF <2> 7"}, {Text: "the reason"}, {Text: "key_3."}, {Text: "title"}, {Text: "MAIL"}, {Text: "_"}, {Text: `"`},
			{Since: middle.CreatedAt}, {Until: middle.CreatedAt}, {Since: all[groups*size-9].CreatedAt, Until: middle.CreatedAt, Type: "work"}, {Since: time.Now().Add(time.Hour)}, {Until: all[0].CreatedAt.Add(-time.Hour)},
		} {
			var want []task.ID
			for _, of := range all {
				text := func(in string) bool { return strings.Contains(strings.ToLower(in), strings.ToLower(f.Text)) }
				if (f.Type == "" || of.Spec.Type == f.Type) && (f.State == "" || of.State == f.State) && (f.Group == 0 || of.GroupID == f.Group) && !of.CreatedAt.Before(f.Since) &&
					(f.Until.IsZero() || of.CreatedAt.Before(f.Until)) && slices.ContainsFunc([]string{of.Spec.Type, of.Spec.Title, of.Spec.IdempotencyKey, of.LastError}, text) {
					want = append(want, of.ID)
				}
			}
			for _, limit := range []int{90, 5000} {
				f.Limit = limit
				got, pages := s.searched(f, 0)
				require.Equal(s, want, got, "filter %d, limit %d", i, limit)
				if len(want) < limit {
					quick, fewer := s.searched(f, time.Minute)
					require.Equal(s, want, quick)
					require.Equal(s, 1, fewer, "filter %d: %d without a budget", i, pages)
				}
			}
		}
	})
}

func TestWhatWorkersHoldHasTheRestOfItsLease(t *testing.T) {
	each(t, func(s *scene) {
		a, b := worker("a"), worker("b")
		a.Labels, b.Owner = map[string]string{"disk": "eu1"}, "host/boot/12/1/n"
		for _, w := range []taskports.Claimant{a, b} {
			_, err := s.Heartbeat(s.Context(), w, nil)
			require.NoError(s, err)
		}
		running := s.claim(s.one(task.Spec{}, task.Budget{}), b)
		s.assign(s.placed(task.Spec{}), "a", s.lead())
		for _, text := range []string{
			"INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) VALUES (1, 'nightly', 'k', {now})",
			"INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, owner, epoch, active, lease_until, created_at) VALUES (1, 1, 'nightly', 1, 'STARTED', 'host/boot/12/1/n', 1, 1, {now}, {now})",
			"INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) VALUES (2, 'nightly', 'l', {now})",
			"INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, owner, epoch, active, lease_until, created_at) VALUES (2, 2, 'nightly', 1, 'STARTED', 'web/boot/77/1/n', 1, 1, {now}, {now})",
			"INSERT INTO surfin_step_execution (id, job_execution_id, job_name, name, status, owner, epoch, manager_id, lease_until, started_at) VALUES (9, 1, 'nightly', 'load:3', 'STARTED', 'host/boot/12/1/n', 1, 8, {now}, {now})",
		} {
			now := gormtx.Now(s.db.Dialect())
			_, err := s.db.Conn().ExecContext(s.Context(), strings.ReplaceAll(text, "{now}", now))
			require.NoError(s, err)
		}
		held, more, err := s.Held(s.Context())
		require.NoError(s, err)
		require.False(s, more)
		var got []string
		for i := range held {
			h := &held[i]
			got = append(got, fmt.Sprintf("%s%s %s %s %d %s", h.Worker, h.Process, h.Kind, h.Name, h.Execution, h.State))
			if h.ID == int64(running.Task.ID) && h.Kind == ports.PlacedTask {
				require.InDelta(s, 60, *h.LeaseLeft, 30)
			}
			if h.Kind != ports.PlacedTask {
				require.True(s, h.IsOrphaned())
			}
		}
		require.ElementsMatch(s, []string{"b task work 0 RUNNING", "a task work 0 ASSIGNED", "b part load:3 1 STARTED", "b execution nightly 1 STARTED", "web:77 execution nightly 2 STARTED"}, got)
	})
}

func TestClassesOfPlacedTasksAreCountedByTheirIndex(t *testing.T) {
	each(t, func(s *scene) {
		none, err := s.Classes(s.Context(), 10)
		require.NoError(s, err)
		require.Empty(s, none)
		for _, of := range []struct{ kind, disk string }{{"work", "eu1"}, {"work", "eu1"}, {"mail", "eu1"}, {"mail", "us"}, {"work", ""}} {
			spec := task.Spec{Type: of.kind}
			if of.disk != "" {
				spec.On = &core.Placement{Labels: map[string]string{"disk": of.disk}}
			}
			s.submit(task.Submission{Tasks: []task.Spec{spec}})
		}
		classes, err := s.Classes(s.Context(), 10)
		require.NoError(s, err)
		var got []string
		for _, c := range classes {
			require.WithinDuration(s, time.Now(), c.Since, time.Minute)
			got = append(got, fmt.Sprintf("%s %s %d %d", c.On, c.Type, c.Work, c.Orphaned))
		}
		require.Equal(s, []string{"disk=eu1 mail 1 0", "disk=eu1 work 2 0", "disk=us mail 1 0"}, got)
		few, err := s.Classes(s.Context(), 2)
		require.NoError(s, err)
		require.Len(s, few, 2)
	})
}

func TestTheOutputOfATaskIsReadInPages(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{MaxAttempts: 3})
		claimed := s.claim(d, worker("a"))
		failed := task.Failure("no").WithArtifact(task.Stdout("Grüße, ")).WithArtifact(task.Stderr("oh"))
		s.end(claimed.Ref, failed)
		s.end(s.claim(s.again(), worker("a")).Ref, task.Success().WithArtifact(task.Stdout(strings.Repeat("é", 25))))
		text, from, pages := "", 0, 0
		for {
			log, err := s.TaskQueries.Log(s.Context(), taskports.LogFilter{Task: d.ID, From: from, Limit: 10})
			require.NoError(s, err)
			require.Equal(s, 2, log.Attempt)
			text, pages = text+log.Text, pages+1
			if from = log.Next; from == 0 {
				require.Equal(s, []taskports.TaskOutput{{Attempt: 2, Output: task.KindStdout, Characters: 25}, {Attempt: 1, Output: task.KindStdout, Characters: 7}, {Attempt: 1, Output: task.KindStderr, Characters: 2}}, log.Outputs)
				break
			}
		}
		require.Equal(s, 3, pages)
		require.Equal(s, strings.Repeat("é", 25), text)
		mask := func(text string) string { return strings.ReplaceAll(text, "Grüße", "***") }
		for from, read := 0, ""; ; {
			log, err := s.TaskQueries.Log(s.Context(), taskports.LogFilter{Task: d.ID, Attempt: 1, From: from, Limit: 2, Mask: mask})
			require.NoError(s, err)
			if from, read = log.Next, read+log.Text; from == 0 {
				require.Equal(s, "***, ", read, "a secret over the edge of a page")
				break
			}
		}
		first, err := s.TaskQueries.Log(s.Context(), taskports.LogFilter{Task: d.ID, Attempt: 1, Output: task.KindStderr, Limit: 10})
		require.NoError(s, err)
		require.Equal(s, "oh", first.Text)
		for _, wrong := range []taskports.LogFilter{{Task: d.ID, Attempt: 3}, {Task: d.ID, Attempt: 2, Output: task.KindStderr}, {Task: 99}} {
			_, err := s.TaskQueries.Log(context.WithoutCancel(s.Context()), wrong)
			require.True(s, errors.Is(err, core.ErrNotFound), "%v", err)
		}
	})
}
