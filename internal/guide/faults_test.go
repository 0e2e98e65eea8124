package guide

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const faultJob = `job: guide_%ROW%
parameters:
  input: {type: path}
flow:
- step: load
  listeners: [%LISTENERS%]
  timeout: %TIMEOUT%
  chunk:
    size: 4
    reader: {csv: {path: "${params.input}", item: order}}
    processor:
    - validate: {positive: item.amount >= 0, next: item.amount + 1 >= 0}
    writer: {table: {name: orders_%ROW%}}
%SETTINGS%
`

type order struct {
	ID     int64 `json:"id"`
	Amount int64 `json:"amount"`
}

const noClass = "none"

type faultRow struct {
	number            int
	phase, err, class string
	settings          []string
	transactions      string
	counters          string
	status            string
	resumes           int // the item that a restart reads first; 0 means none
}

func faultRows(t *testing.T) []faultRow {
	t.Helper()
	text := section(t, page(t, "docs/fault-tolerance.md"), "## What happens")
	var rows []faultRow
	phase := ""
	for _, c := range table(t, text, "phase", "error", "class", "settings", "transactions", "counters", "step") {
		if c[0] != "" {
			phase = c[0]
		}
		r := faultRow{number: len(rows) + 1, phase: phase, err: c[1], class: strings.Trim(c[2], "`"), transactions: c[4], counters: c[5]}
		for i, part := range strings.Split(c[3], "`") {
			if i%2 == 1 {
				r.settings = append(r.settings, part)
			}
		}
		var resumes string
		r.status, resumes, _ = strings.Cut(c[6], ", resumes at ")
		if resumes != "" {
			n, err := strconv.Atoi(resumes)
			require.NoError(t, err, c)
			r.resumes = n
		}
		rows = append(rows, r)
	}
	return rows
}

func TestWhatTheGuideSaysAboutEveryErrorIsWhatHappens(t *testing.T) {
	t.Parallel()
	rows := faultRows(t)
	left := troubles()
	for _, r := range rows {
		_, ok := troubles()[r.phase+": "+r.err]
		require.True(t, ok, "the table has an error that this test does not know how to cause: %s: %s", r.phase, r.err)
		delete(left, r.phase+": "+r.err)
	}
	require.Empty(t, left, "the table lacks errors")
	testdb.Each(t, func(t *testing.T, url string) {
		for _, r := range rows {
			t.Run(fmt.Sprintf("row %d, %s, %s, %s", r.number, r.phase, r.err, strings.Join(r.settings, " ")), func(t *testing.T) {
				t.Parallel()
				own := url // shared: each row has its own job and table
				if strings.HasPrefix(url, "sqlite") {
					own = testdb.SQLite(t)
				}
				newStand(t, own, r).check()
			})
		}
	})
}

type stand struct {
	t        *testing.T
	row      faultRow
	trouble  trouble
	url      string
	seen     *witness
	faulty   *batchtest.Env
	registry *registry.Registry
}

func newStand(t *testing.T, url string, r faultRow) *stand {
	t.Helper()
	s := &stand{t: t, row: r, trouble: troubles()[r.phase+": "+r.err], url: url, seen: &witness{}}
	opts := append(s.application(s.trouble.listener), batchtest.WithFaults(s.trouble.faults...))
	if s.trouble.commit != nil {
		opts = append(opts, batchtest.With(s.trouble.commit()))
	}
	s.faulty = batchtest.New(t, append(opts, batchtest.With(fx.Populate(&s.registry)))...)
	s.faulty.Exec(fmt.Sprintf("create table orders_%d (id bigint primary key, amount bigint not null)", r.number))
	for _, id := range s.trouble.present {
		s.faulty.Exec(fmt.Sprintf("insert into orders_%d values (%d, 99)", r.number, id))
	}
	return s
}

func (s *stand) application(failing *failingListener) []batchtest.Option {
	opts := []fx.Option{
		batch.Item[order]("order"), batch.Observe(s.seen),
		batch.Listener("witness", func() *witness { return s.seen }),
	}
	if failing != nil {
		opts = append(opts, batch.Listener("failing", func() *failingListener { return failing }))
	}
	return []batchtest.Option{batchtest.On(s.url), batchtest.With(opts...)}
}

func (s *stand) job(listeners string, settings []string) string {
	text := strings.NewReplacer("%LISTENERS%", listeners, "%TIMEOUT%", cmp.Or(s.trouble.timeout, "10m"), "%ROW%", strconv.Itoa(s.row.number), "%SETTINGS%", "    "+strings.Join(settings, "\n    ")).Replace(faultJob)
	return s.faulty.File("job.yaml", text)
}

func (s *stand) input() {
	lines := []string{"id,amount"}
	for id := 1; id <= 10; id++ {
		line, ok := s.trouble.lines[id]
		if !ok {
			line = fmt.Sprintf("%d,1", id)
		}
		lines = append(lines, line)
	}
	s.faulty.File("in.csv", strings.Join(lines, "\n")+"\n")
}

func (s *stand) check() {
	t := s.t
	listeners := "witness"
	if s.trouble.listener != nil {
		listeners += ", failing"
	}
	s.input()
	run := s.faulty.Job(s.job(listeners, s.row.settings), "input="+s.faulty.Path("in.csv"))
	step := run.Step("load")
	require.Equal(t, s.row.status, string(run.Execution.Status), run.String())
	require.Equal(t, s.row.status, string(step.Status), run.String())
	require.Equal(t, s.row.transactions, strings.Join(s.seen.trace, ", "), run.String())
	require.Equal(t, s.row.counters, countersText(step.Counters), run.String())
	s.class()
	skipped := s.skips(run)
	written := s.written()
	require.Len(t, written, int(step.Counters.Write))
	if s.row.status == string(core.StatusCompleted) {
		require.Zero(t, s.row.resumes)
		require.Equal(t, without(1, skipped), written)
		return
	}
	s.restart(written)
}

func (s *stand) class() {
	switch core.Phase(s.row.phase) {
	case core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
		if s.row.err == "a panic" && s.row.class == noClass {
			return // it is not an item's failure, and not all listeners are called
		}
		require.NotEmpty(s.t, s.seen.failures)
		require.Equal(s.t, s.row.class, cmp.Or(s.registry.Matchers().Class(s.seen.failures[0]), noClass))
	default:
		require.Equal(s.t, noClass, s.row.class)
	}
}

func (s *stand) skips(run *batchtest.Run) []int64 {
	step, stored := run.Step("load"), run.Skipped("load")
	var ids []int64
	for _, skip := range stored {
		require.Equal(s.t, s.row.phase, string(skip.Phase))
		require.Equal(s.t, s.row.class, cmp.Or(skip.Class, noClass))
		require.NotEmpty(s.t, skip.Error)
		id := skip.Meta.Line - 1 // of the heading
		if skip.Phase != core.PhaseRead {
			var item order
			require.NoError(s.t, json.Unmarshal(skip.Item, &item))
			require.Equal(s.t, id, item.ID)
		}
		ids = append(ids, id)
	}
	if step.Status == core.StatusCompleted {
		require.Len(s.t, stored, int(step.Counters.Skips()))
	}
	return ids
}

func (s *stand) written() []int64 {
	var ids []int64
	for _, text := range s.faulty.Rows(fmt.Sprintf("select id from orders_%d where amount <> 99 order by id", s.row.number)) {
		id, err := strconv.ParseInt(text, 10, 64)
		require.NoError(s.t, err)
		ids = append(ids, id)
	}
	return ids
}

func (s *stand) restart(before []int64) {
	t := s.t
	require.NotZero(t, s.row.resumes)
	mended := batchtest.New(t, s.application(&failingListener{at: "never"})...) // the file as it was names it
	run := mended.Job(s.job("witness", []string{"skip: 10"}), "input="+s.faulty.Path("in.csv")).Completed()
	c := run.Step("load").Counters
	require.Equal(t, 11-s.row.resumes, int(c.Read+c.ReadSkip), "items read by the restart")
	bad := s.trouble.present
	for id := range s.trouble.lines {
		bad = append(bad, int64(id))
	}
	slices.Sort(before)
	require.Equal(t, append(before, without(int64(s.row.resumes), bad)...), s.written(), "rows after the restart")
}

func without(from int64, bad []int64) []int64 {
	var ids []int64
	for id := from; id <= 10; id++ {
		if !slices.Contains(bad, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func countersText(c core.Counters) string {
	var parts []string
	for _, p := range []struct {
		name string
		n    int64
	}{
		{"read", c.Read}, {"filtered", c.Filter}, {"written", c.Write}, {"read_skipped", c.ReadSkip}, {"process_skipped", c.ProcessSkip},
		{"write_skipped", c.WriteSkip}, {"commits", c.Commit}, {"rollbacks", c.Rollback},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.n))
		}
	}
	return strings.Join(parts, ", ")
}

type witness struct {
	mu       sync.Mutex
	failures []error
	trace    []string
	rows     int64
}

func (w *witness) note(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, err)
	return nil
}

func (w *witness) OnReadError(_ context.Context, err error) error                { return w.note(err) }
func (w *witness) OnProcessError(_ context.Context, _ any, err error) error      { return w.note(err) }
func (w *witness) OnWriteError(_ context.Context, err error, _ item.Items) error { return w.note(err) }
func (w *witness) Observe(_ context.Context, event core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case core.ChunkCommitted:
		n := e.Counters.Write - w.rows
		w.rows = e.Counters.Write
		if n == 0 {
			w.trace = append(w.trace, "verdict")
			return
		}
		w.trace = append(w.trace, strconv.FormatInt(n, 10))
	case core.ChunkRolledBack:
		w.trace = append(w.trace, "undone")
	}
}
