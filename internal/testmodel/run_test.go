package testmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type bench struct {
	db         tx.Database
	line       *line
	lined      tx.Database // for the step
	repository *repository.Repository
	lineRepo   *repository.Repository // for the engine
	owner      core.Owner
	runs       int
}

func newBench(t *testing.T, url string) *bench {
	t.Helper()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	l := &line{}
	b := &bench{
		db: db, line: l, lined: database{db, l, true},
		repository: repository.New(db, repository.Options{}),
		lineRepo:   repository.New(database{db, l, false}, repository.Options{}),
	}
	b.owner, err = job.CurrentOwner()
	require.NoError(t, err)
	require.NoError(t, b.repository.Migrate(t.Context()))
	sequence := "bigserial primary key"
	if db.Dialect() == tx.SQLite {
		sequence = "integer primary key autoincrement"
	}
	for _, ddl := range []string{
		"create table target (seq " + sequence + ", run bigint not null, place bigint not null, value bigint not null)",
		"create index target_run on target (run)",
	} {
		_, err := db.Conn().ExecContext(t.Context(), ddl)
		require.NoError(t, err)
	}
	return b
}

func (b *bench) check(t *rapid.T, s *scenario) {
	b.runs++
	m := &historyModel{s: s}
	type loss struct {
		id   core.JobExecutionID
		want core.Counters
	}
	var losses []loss
	var skipped []string
	for i, l := range append(slices.Clone(s.Launches), launch{}) {
		want := m.launch(l)
		got, id := b.launch(t, s, l, i)
		for _, text := range want.says {
			require.Contains(t, got.says[0], text, "launch %d of run %d\n%v", i+1, b.runs, s)
		}
		want.says, got.says = nil, nil
		if s.Ahead {
			want.orderOfWrites()
			got.orderOfWrites()
		}
		if want.Processed == nil {
			got.Processed = nil
		}
		skipped = append(skipped, got.Skips...)
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("launch %d of run %d\n%vrules:  %v\nengine: %v", i+1, b.runs, s, want, got)
		}
		if want.Status == lost {
			losses = append(losses, loss{id, want.Counters})
		}
		if want.Status == string(core.StatusCompleted) {
			complete(t, s, got.Rows, skipped)
			break
		}
	}
	if s.Isolate == chunk.IsolateBisect && s.stable() {
		bisectingEndsAsOneByOne(t, s)
	}
	for _, l := range losses { // they were taken over
		record := b.step(t, l.id)
		require.Equal(t, core.StatusFailed, record.Status, "%v", s)
		require.Equal(t, l.want, record.Counters, "%v", s)
	}
}

func complete(t *rapid.T, s *scenario, rows []pair, skipped []string) {
	verdicts := make([]int, len(s.Values))
	for _, it := range rows {
		require.Equal(t, s.Values[it.Place], it.Value)
		verdicts[it.Place]++
	}
	for place, value := range s.Values {
		for _, k := range skipped {
			if strings.HasSuffix(k, fmt.Sprintf(" line %d %v", place+1, pair{place, value})) {
				verdicts[place]++
			}
		}
		if verdicts[place] == 0 && slices.Contains(s.Filters, value) {
			verdicts[place]++
		}
		require.Equal(t, 1, verdicts[place], "verdicts of place %d\n%v", place, s)
	}
}

// bisectingEndsAsOneByOne compares the model with itself, which is known to
// match the engine: both isolations have the same outcomes (rule C7).
func bisectingEndsAsOneByOne(t *rapid.T, s *scenario) {
	each := *s
	each.Isolate = chunk.IsolateEach
	m, n := &historyModel{s: s}, &historyModel{s: &each}
	for _, l := range s.Launches {
		halved, single := m.launch(l), n.launch(l)
		for _, r := range []*result{&halved, &single} {
			r.Trace, r.Processed, r.Counters.Commit, r.Counters.Rollback = nil, nil, 0, 0
		}
		require.Equal(t, single, halved, "%v", s)
		if halved.Status == string(core.StatusCompleted) {
			return
		}
	}
}

// orderOfWrites leaves out when, and how often, items are read and processed: items read ahead may be
// discarded.
func (r *result) orderOfWrites() {
	r.Processed = nil
	r.Trace = slices.DeleteFunc(r.Trace, func(text string) bool { return strings.ContainsAny(text[:1], "rsp") })
	if len(r.Trace) == 0 {
		r.Trace = nil
	}
}

const launchTime = time.Minute

// launch runs the real engine once. Each launch has another owner, which takes over the work of a killed one.
func (b *bench) launch(t *rapid.T, s *scenario, l launch, n int) (result, core.JobExecutionID) {
	w := newWorld(s, l.Faults)
	b.line.reset(w, l)
	d := b.db.Dialect()
	out := &target{w: w, db: b.db, run: b.runs, insert: fmt.Sprintf(
		"insert into target (run, place, value) values (%s, %s, %s)", d.Placeholder(1), d.Placeholder(2), d.Placeholder(3))}
	st, err := chunk.New(config(w, b.lined, out, s.pure(l)))
	require.NoError(t, err)
	owner := b.owner
	owner.Nonce = fmt.Sprintf("launch%d", n)
	launcher, err := job.NewLauncher(job.Config{
		Repository: b.lineRepo.Ports(), Executor: step.NewSimpleStepExecutor(b.lineRepo, b.db.Name(), nil),
		Owner: owner, Lease: time.Hour, Heartbeat: 10 * time.Minute, Dead: func(core.Owner) bool { return true },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), launchTime)
	defer cancel()
	exec, err := launcher.Run(ctx, testengine.Job(fmt.Sprintf("run-%d", b.runs), &model.StepElement{Step: st}), core.Parameters{}, nil)
	require.NotNil(t, exec, "launch %d: %v\n%v", n+1, err, s)
	record := b.step(t, exec.ID)
	r := result{Status: string(record.Status), Counters: record.Counters, Trace: w.trace, Processed: w.processed, says: []string{record.Error}}
	if err != nil {
		require.ErrorIs(t, err, errLost, "launch %d\n%v", n+1, s)
		require.Equal(t, core.StatusStarted, record.Status, "a dead process records nothing")
		r.Status = lost
	} else {
		require.Equal(t, exec.Status, record.Status)
	}
	slices.Sort(r.Processed)
	r.Rows, r.Skips = b.rows(t), b.skips(t, s, exec.ID)
	return r, exec.ID
}

func (b *bench) step(t *rapid.T, id core.JobExecutionID) core.StepExecution {
	steps, err := b.repository.Steps(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	return steps[0]
}

func (b *bench) rows(t *rapid.T) []pair {
	rows, err := b.db.Conn().QueryContext(t.Context(), fmt.Sprintf("select place, value from target where run = %d order by seq", b.runs))
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	var list []pair
	for rows.Next() {
		var it pair
		require.NoError(t, rows.Scan(&it.Place, &it.Value))
		list = append(list, it)
	}
	require.NoError(t, rows.Err())
	return list
}

// skips reads the stored skips, and checks the parts of each that do not
// depend on the order of events.
func (b *bench) skips(t *rapid.T, s *scenario, id core.JobExecutionID) []string {
	items, err := b.repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: id, Limit: 1000})
	require.NoError(t, err)
	var list []string
	for _, k := range items {
		var it pair
		if k.Phase == core.PhaseRead {
			require.Nil(t, k.Item, "%v", s)
			// Where the item was is in the text of its error.
			_, place, _ := strings.Cut(k.Error, " at place ")
			_, err := fmt.Sscan(place, &it.Place)
			require.NoError(t, err, k.Error)
			it.Value = s.Values[it.Place]
			if s.Reading == consumes {
				require.Equal(t, int64(it.Place+1), k.Meta.Line, "%v", s)
			}
		} else {
			require.NoError(t, json.Unmarshal(k.Item, &it))
			require.Equal(t, int64(it.Place+1), k.Meta.Line, "%v", s)
		}
		require.Contains(t, k.Error, fmt.Sprintf("at place %d", it.Place), "%v", s)
		require.Equal(t, it.Place, b.marked(t, k.Mark), "the mark of %v leads elsewhere\n%v", k, s)
		list = append(list, stored(&slot{item: it, skip: k.Phase}))
	}
	return list
}

func (b *bench) marked(t *rapid.T, mark item.Position) int {
	var at struct{ Reader, Items int }
	if len(mark) > 0 {
		require.NoError(t, json.Unmarshal(mark, &at), string(mark))
	}
	return at.Reader + at.Items
}
