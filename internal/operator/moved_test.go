package operator

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// race calls the act twice at once. One runs to its end, the other is refused as moved.
func (s *scene) race(act func() (*Running, error)) (ended *core.JobExecution, refused *Refusal) {
	s.t.Helper()
	var started [2]*Running
	var errs [2]error
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() {
			if started[i], errs[i] = act(); errs[i] == nil {
				_, errs[i] = started[i].Wait()
			}
		})
	}
	both.Wait()
	for i, r := range started {
		if r == nil {
			require.ErrorAs(s.t, errs[i], &refused)
			continue
		}
		require.NoError(s.t, errs[i])
		require.Nil(s.t, ended, "both were started")
		e, err := s.e.Repository.Execution(context.Background(), r.Execution().ID)
		require.NoError(s.t, err)
		ended = e
	}
	require.NotNil(s.t, ended)
	require.NotNil(s.t, refused)
	return ended, refused
}

func TestOfTwoRestartsForOnePlanOneIsDone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("broken.yaml", "job: broken\nflow:\n- step: broken\n  tasklet: {sql: select * from nowhere}\n")
		newest := s.run("broken.yaml", nil)
		for range 3 {
			req := RestartRequest{Execution: newest.ID, Epoch: newest.Epoch}
			ended, refused := s.race(func() (*Running, error) { return s.s.Restart(WithReason(ctx, "the table is there"), req) })
			require.Equal(t, refusal.Moved, refused.Reason)
			require.Equal(t, newest.ID, refused.Execution)
			require.Equal(t, ended.ID, refused.Now.Execution)
			require.NotEmpty(t, refused.Actions)
			newest = ended
		}
		require.Len(t, s.executions(), 4)
		_, err := s.s.Restart(ctx, RestartRequest{Execution: newest.ID, Epoch: newest.Epoch + 1})
		requireMoved(t, err, refusal.State{Execution: newest.ID, Status: core.StatusFailed, Epoch: newest.Epoch})

		_, _, err = s.s.AbandonAnswer(ctx, newest.ID, newest.Epoch+1)
		requireMoved(t, err, refusal.State{Execution: newest.ID, Status: core.StatusFailed, Epoch: newest.Epoch})
		_, answer, err := s.s.AbandonAnswer(WithReason(ctx, "for good"), newest.ID, newest.Epoch)
		require.NoError(t, err)
		require.Equal(t, core.Applied, answer)
		_, answer, err = s.s.AbandonAnswer(ctx, newest.ID, newest.Epoch)
		require.NoError(t, err)
		require.Equal(t, core.Duplicate, answer)
		shown, err := s.s.Show(ctx, ShowRequest{Execution: newest.ID, Audit: true})
		require.NoError(t, err)
		require.Equal(t, newest.Epoch, shown.Epoch)
		require.Contains(t, shown.Audit[0].Detail, ": the table is there")
		require.Equal(t, "for good", shown.Audit[len(shown.Audit)-1].Detail)
	})
}

func requireMoved(t *testing.T, err error, now refusal.State) {
	t.Helper()
	var r *Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, refusal.Moved, r.Reason, r.Error())
	require.Equal(t, &now, r.Now)
}

func TestAStopForAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		launched, err := s.e.Repository.Launch(ctx, ports.LaunchRequest{JobName: "load", Restartable: true, Lease: 1e12, Owner: core.Owner{Host: "elsewhere", PID: 7}})
		require.NoError(t, err)
		e := launched.Execution
		_, _, err = s.s.StopAnswer(ctx, e.ID, e.Epoch+1)
		requireMoved(t, err, refusal.State{Execution: e.ID, Status: core.StatusStarting, Epoch: e.Epoch})
		_, answer, err := s.s.StopAnswer(ctx, e.ID, e.Epoch)
		require.NoError(t, err)
		require.Equal(t, core.Applied, answer)
		_, answer, err = s.s.StopAnswer(ctx, e.ID, e.Epoch)
		require.NoError(t, err)
		require.Equal(t, core.Duplicate, answer)
	})
}

func TestOfTwoRedrivesForOnePageOneIsDone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.e.Exec("create table loaded (id int)")
		s.write("load.yaml", `job: load
flow:
- step: load
  chunk: {size: 2, skip: {limit: 5}, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: loaded}}
`)
		s.write("in.csv", numberedLines(4, 2, 3))
		e := s.run("load.yaml", nil)
		require.Equal(t, core.StatusCompleted, e.Status, e.Error)
		skips, err := s.s.Skips(ctx, SkipsRequest{Execution: e.ID})
		require.NoError(t, err)
		fixed := "2"
		req := RedriveRequest{Execution: e.ID, Epoch: e.Epoch, File: filepath.Join(s.dir, "load.yaml"), Edited: map[int64]Edit{skips.Items[0].ID: {Raw: &fixed}}}
		ended, refused := s.race(func() (*Running, error) { return s.s.Redrive(ctx, req) })
		require.Equal(t, core.StatusCompleted, ended.Status, ended.Error)
		require.Contains(t, []Reason{refusal.Moved, refusal.Running}, refused.Reason)
		_, err = s.s.Redrive(ctx, req)
		now := refusal.State{Execution: ended.ID, Status: core.StatusCompleted, Epoch: ended.Epoch}
		requireMoved(t, err, now)

		req.Edited = map[int64]Edit{skips.Items[1].ID: {Raw: &fixed}}
		_, err = s.s.Redrive(ctx, RedriveRequest{Execution: e.ID, Epoch: e.Epoch + 1, File: req.File, Edited: req.Edited})
		requireMoved(t, err, refusal.State{Execution: e.ID, Status: core.StatusCompleted, Epoch: e.Epoch})
		running, err := s.s.Redrive(ctx, req)
		require.NoError(t, err)
		last, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, last.Status, last.Error)
		_, err = s.s.Redrive(ctx, RedriveRequest{Execution: e.ID, Epoch: e.Epoch, File: req.File})
		now.Execution = last.ID
		requireMoved(t, err, now)
		require.Equal(t, []int64{4}, s.e.Ints("select count(*) from loaded"))
	})
}

// between calls do once, after the skipped items of a plan were read.
type between struct {
	redriveRecords
	do func()
}

func (b *between) SkippedItems(ctx context.Context, filter ports.SkipFilter) ([]core.SkippedItem, error) {
	found, err := b.redriveRecords.SkippedItems(ctx, filter)
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return found, err
}

// skipsInTwoSteps runs a job that skips two lines in each of its steps a and b.
func (s *scene) skipsInTwoSteps() (*core.JobExecution, []SkipView) {
	s.t.Helper()
	s.e.Exec("create table loaded (id int)")
	s.write("load.yaml", `job: load
flow:
- step: a
  chunk: {size: 2, skip: {limit: 5}, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: loaded}}
- step: b
  chunk: {size: 2, skip: {limit: 5}, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: loaded}}
`)
	s.write("in.csv", numberedLines(4, 2, 3))
	e := s.run("load.yaml", nil)
	page, err := s.s.Skips(context.Background(), SkipsRequest{Execution: e.ID})
	require.NoError(s.t, err)
	require.Len(s.t, page.Items, 4)
	return e, page.Items
}

// A redrive must say so if another one takes its items while it is planned.
func TestARedriveThatIsOvertakenSaysSo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		e, skips := s.skipsInTwoSteps()
		request := func(epoch int64, text string, ids ...int) RedriveRequest {
			req := RedriveRequest{Execution: e.ID, Epoch: epoch, File: filepath.Join(s.dir, "load.yaml"), Edited: map[int64]Edit{}}
			for _, i := range ids {
				req.Edited[skips[i].ID] = Edit{Raw: &text}
			}
			return req
		}
		redriven := func(req RedriveRequest) *Execution {
			running, err := s.s.Redrive(ctx, req)
			require.NoError(t, err)
			ended, err := running.Wait()
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, ended.Status, ended.Error)
			return ended
		}
		real := s.s.runs.redrives.records
		overtaken := func(by, req RedriveRequest) (first *Execution, err error) {
			s.s.runs.redrives.records = &between{redriveRecords: real, do: func() { first = redriven(by) }}
			defer func() { s.s.runs.redrives.records = real }()
			running, err := s.s.Redrive(ctx, req)
			if err == nil {
				_, err = running.Wait()
			}
			return first, err
		}

		first, err := overtaken(request(0, "12", 0), request(e.Epoch, "13", 0))
		requireMoved(t, err, refusal.State{Execution: first.ID, Status: core.StatusCompleted, Epoch: first.Epoch})
		_, err = overtaken(request(0, "14", 1), request(0, "15", 1))
		require.ErrorIs(t, err, ports.ErrRedriven)
		_, err = overtaken(request(0, "16", 2), request(e.Epoch, "17", 3)) // of the same step, but another item
		require.ErrorAs(t, err, new(*ports.MovedError))
		redriven(request(e.Epoch, "17", 3))
		require.Equal(t, []int64{1, 1, 4, 4, 12, 14, 16, 17}, s.e.Ints("select id from loaded order by id"))
		require.Len(t, s.executions(), 5)
	})
}

// Redrives of different steps are in each other's way only for a moment.
func TestRedrivesOfTwoStepsAtOnceAreBothDone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		e, skips := s.skipsInTwoSteps()
		redrive := func(i int) {
			text := "20"
			req := RedriveRequest{Execution: e.ID, Epoch: e.Epoch, File: filepath.Join(s.dir, "load.yaml"), Edited: map[int64]Edit{skips[i].ID: {Raw: &text}}}
			running, err := s.s.Redrive(ctx, req)
			require.NoError(t, err)
			_, err = running.Wait()
			require.NoError(t, err)
		}
		real := s.s.runs.redrives.records
		s.s.runs.redrives.records = &between{redriveRecords: real, do: func() { redrive(2) }}
		redrive(0)
		require.Equal(t, []int64{2}, s.e.Ints("select count(*) from loaded where id = 20"))
	})
}
