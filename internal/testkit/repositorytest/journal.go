package repositorytest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func journalTests() []test {
	return []test{
		{"a loop of many rounds is read as its last rows, with one statement", journalIsReadShort},
		{"a launch from the start leaves out what is older", journalIsReadAnew},
		{"of two copies of a job's context the one of the greater revision stays", newestContextStays},
		{"a child that begins while its parent is asked to stop is asked, too", childSeesStop},
	}
}

func (b *bench) visit(id core.JobExecutionID, visits ...ports.FlowVisit) {
	b.Helper()
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		recorded, err := b.repo.RecordVisits(ctx, id, visits)
		require.True(b, recorded)
		return err
	}))
}

func (b *bench) visitStep(ref ports.JobRef, name string, ordinal int64) {
	b.Helper()
	step, err := b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: name, Visit: core.Visit{Ordinal: ordinal, Element: name}})
	require.NoError(b, err)
	b.end(stepRef(*step), ports.StepChange{To: core.StatusCompleted})
}

func (b *bench) visits(id core.JobInstanceID, since core.JobExecutionID) []string {
	b.Helper()
	rows, err := b.repo.Visits(b.ctx, id, since)
	require.NoError(b, err)
	list := []string{}
	for _, row := range rows {
		list = append(list, fmt.Sprintf("%d %s:%d:%s %s %s", row.Execution, row.Flow, row.Ordinal, row.Element, row.Kind, row.Verdict))
	}
	slices.Sort(list)
	return list
}

func decision(ordinal int64, verdict string) ports.FlowVisit {
	return ports.FlowVisit{Visit: core.Visit{Ordinal: ordinal, Element: "more"}, Kind: ports.VisitDecision, Verdict: verdict}
}

func journalIsReadShort(b *bench) {
	exec, ref := b.started("a", 1)
	b.visitStep(ref, "work", 1)
	b.visit(ref.ID, decision(2, "AGAIN"))
	rounds := `WITH RECURSIVE round(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM round WHERE n < 10000) `
	b.exec(`INSERT INTO %[1]sflow_visit (job_execution_id, flow, ordinal, element, kind, verdict, target, created_at) ` + rounds + `
		SELECT f.job_execution_id, f.flow, 2 * round.n, f.element, f.kind, f.verdict, f.target, f.created_at FROM %[1]sflow_visit f CROSS JOIN round`)
	b.exec(`INSERT INTO %[1]sstep_execution (job_execution_id, job_name, name, flow, ordinal, element, status, owner, epoch, started_at) ` + rounds + `
		SELECT s.job_execution_id, s.job_name, s.name, s.flow, 2 * round.n - 1, s.element, s.status, s.owner, s.epoch, s.started_at
		FROM %[1]sstep_execution s CROSS JOIN round`)
	b.visit(ref.ID, ports.FlowVisit{Visit: core.Visit{Ordinal: 20001, Element: "more"}, Kind: ports.VisitStop})
	require.Equal(b, 10000, b.count("%sstep_execution"))

	w := b.watch()
	require.Equal(b, []string{"1 :19999:work step ", "1 :20000:more decision AGAIN", "1 :20001:more stop "}, b.visits(exec.InstanceID, 0))
	require.Len(b, w.take(), 1)
}

func journalIsReadAnew(b *bench) {
	exec, ref := b.started("a", 1)
	b.visitStep(ref, "work", 1)
	b.visit(ref.ID, decision(2, "AGAIN"))
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	second, again := b.started("b", 1)
	b.visitStep(again, "work", 3)
	b.visit(again.ID, decision(4, "ON"))

	require.Equal(b, []string{"1 :1:work step ", "1 :2:more decision AGAIN", "2 :3:work step ", "2 :4:more decision ON"}, b.visits(exec.InstanceID, 0))
	require.Equal(b, []string{"2 :3:work step ", "2 :4:more decision ON"}, b.visits(exec.InstanceID, second.ID))
	for since, want := range map[core.JobExecutionID]int{0: 2, second.ID: 1} {
		steps, err := b.repo.LastSteps(b.ctx, exec.InstanceID, since)
		require.NoError(b, err)
		require.Equal(b, want, steps["work"].Attempts)
	}
}

func newestContextStays(b *bench) {
	_, ref := b.started("a", 1)
	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("one", 1))
	older := memory.Clone()
	require.NoError(b, memory.Put("two", 2))
	newer := memory.Clone()
	require.NoError(b, memory.Put("three", 3))
	keys := func() []string { return b.execution(ref.ID).Context.Keys() }

	require.NoError(b, b.repo.SaveJobContext(b.ctx, ref, newer))
	require.NoError(b, b.repo.SaveJobContext(b.ctx, ref, older), "it comes late, and is no error")
	require.Equal(b, []string{"one", "two"}, keys())
	require.NoError(b, b.repo.SaveJobContext(b.ctx, ref, memory))
	require.NoError(b, b.repo.SaveJobContext(b.ctx, ref, newer))
	require.NoError(b, b.repo.SaveJobContext(b.ctx, ref, older))
	require.Equal(b, []string{"one", "three", "two"}, keys())
}

func childSeesStop(b *bench) {
	parent, ref := b.started("a", 1)
	other, w := b.other(), b.watch()
	isInsert := regexp.MustCompile(`^INSERT INTO \W?` + b.Prefix + `job_execution\W`)
	asked := make(chan error, 1)
	inserts := 0
	w.before = func(text string) {
		if !isInsert.MatchString(text) {
			return
		}
		inserts++
		go func() {
			_, err := other.RequestStop(b.ctx, parent.ID, ports.By{Actor: "test"})
			asked <- err
		}()
		select {
		case err := <-asked: // a request that does not wait for the child
			asked <- err
		case <-time.After(500 * time.Millisecond):
		}
	}
	req := b.request("a", 2)
	req.JobName, req.Parent = "child", ref.ID
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.NoError(b, <-asked)
	require.Equal(b, 1, inserts)
	require.True(b, b.execution(parent.ID).StopRequested)
	require.True(b, b.execution(launched.Execution.ID).StopRequested)
}
