package testahead

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
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
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type bench struct {
	*testengine.Engine
	owner    core.Owner
	folder   string
	runs     int
	launches int
}

func newBench(t *testing.T, url string) *bench {
	t.Helper()
	b := &bench{Engine: testengine.New(t, url), folder: t.TempDir()}
	var err error
	b.owner, err = job.CurrentOwner()
	require.NoError(t, err)
	sequence := "bigserial primary key"
	if b.Database.Dialect() == tx.SQLite {
		sequence = "integer primary key autoincrement"
	}
	b.Exec("create table target (seq " + sequence + ", run bigint not null, writer bigint not null, place bigint not null)")
	b.Exec("create index target_run on target (run)")
	return b
}

func (b *bench) newTarget(s *scenario) *target {
	b.runs++
	d := b.Database.Dialect()
	return &target{run: b.runs, folder: b.folder, files: make([][]int, len(s.Outputs)), insert: fmt.Sprintf(
		"insert into target (run, writer, place) values (%s, %s, %s)", d.Placeholder(1), d.Placeholder(2), d.Placeholder(3))}
}

const launchTime = time.Minute

func (b *bench) launch(t *rapid.T, s *scenario, n int, to *target, ahead chunk.ReadAhead) result {
	w := newWorld(s, s.Launches[n], b.Database, to)
	c := configure(w)
	c.ReadAhead = ahead
	st, err := chunk.New(c)
	require.NoError(t, err)
	seen := &events{}
	b.launches++
	owner := b.owner
	owner.Nonce = fmt.Sprintf("launch%d", b.launches)
	launcher, err := job.NewLauncher(job.Config{
		Repository: b.Repository.Ports(), Observer: seen, Executor: step.NewSimpleStepExecutor(b.Repository, b.Database.Name(), seen),
		Owner: owner, Lease: time.Hour, Heartbeat: 10 * time.Minute, Dead: func(core.Owner) bool { return true },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), launchTime)
	defer cancel()
	exec, err := launcher.Run(ctx, testengine.Job(fmt.Sprintf("run-%d", to.run), &model.StepElement{Step: cancellable{st, w}}), core.Parameters{}, nil)
	require.NoError(t, err, "launch %d, read ahead %q\n%v", n+1, ahead, s)
	require.NoError(t, ctx.Err(), "launch %d, read ahead %q\n%v", n+1, ahead, s)
	r := b.recorded(t, exec.ID)
	r.Rows, r.Skips, r.Events = b.rows(t, to.run), b.skips(t, exec.ID), seen.list
	for n, list := range to.files {
		at, content := writerAt(t, r.Position, n), ""
		switch {
		case s.Outputs[n].Form == file && s.Outputs[n].As != inMemory:
			content = to.content(t, at, n)
			list = s.Outputs[n].As.placesIn(content)
		case s.Outputs[n].Beyond:
			list = list[:committed(t, at)]
		}
		r.Files, r.Contents = append(r.Files, append([]int(nil), list...)), append(r.Contents, content) // none is nil
	}
	r.Trace, r.Unordered = w.trace, w.unordered
	r.normalize(w.faults, s.Workers)
	return r
}

func writerAt(t *rapid.T, at string, writer int) json.RawMessage {
	var position struct{ Writers []json.RawMessage }
	if at != "" {
		require.NoError(t, json.Unmarshal([]byte(at), &position))
	}
	if writer >= len(position.Writers) {
		return nil
	}
	return position.Writers[writer]
}

// committed returns the number of items of a file in memory at a position.
func committed(t *rapid.T, at json.RawMessage) (length int) {
	if at != nil {
		require.NoError(t, json.Unmarshal(at, &length))
	}
	return length
}

func configure(w *world) chunk.Config {
	s := w.s
	c := chunk.Config{
		Name: "load", Size: s.Size, MaxSkippedReads: s.MaxSkips, Database: database{w.db, w}, Isolate: s.Isolate,
		Retry:       chunk.Retry{Limit: s.RetryLimit, Backoff: config.Backoff{Initial: 100 * time.Microsecond, Multiplier: 1, Max: time.Millisecond}},
		KeepOutputs: s.Keep, ProcessInTransaction: s.InTx, Concurrency: s.Workers,
		Assemble: func(_ context.Context, run *model.StepRun) (chunk.Parts, error) {
			w.stop = run.Services.Stop.Request
			run.Services.Checkpoints = checkpoints{run.Services.Checkpoints, w}
			run.Services.Lease = lease{run.Services.Lease, w}
			w.use = registry.BuildContext{Attempt: chunk.AttemptOf(run)}
			return parts(w), nil
		},
	}
	if s.SkipLimit >= 0 {
		c.Skip = policy{w, chunk.LimitSkip{Limit: int64(s.SkipLimit)}}
	}
	return c
}

func parts(w *world) chunk.Parts {
	p := chunk.Parts{Reader: reader(w), Listeners: []any{listener{w}}}
	if w.s.BeforeWrite {
		p.Listeners = append(p.Listeners, beforeWrite{w})
	}
	if w.s.AfterProcess {
		p.Listeners = append(p.Listeners, afterProcess{w})
	}
	for n, independent := range w.s.Processors {
		p.Processors = append(p.Processors, item.EraseProcessor[thing, thing](processor{w, n, independent}))
	}
	for n := range w.s.Outputs {
		p.Writers = append(p.Writers, writer(w, n))
	}
	return p
}

func (b *bench) recorded(t *rapid.T, id core.JobExecutionID) result {
	steps, err := b.Repository.Steps(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	record := steps[0]
	r := result{
		Status: record.Status, Exit: record.ExitCode, Error: record.Error, Position: string(record.Position),
		Counters: record.Counters, InHand: record.InHand,
	}
	if record.Context != nil {
		text, err := record.Context.Encode()
		require.NoError(t, err)
		r.Context = string(text)
	}
	return r
}

func (b *bench) rows(t *rapid.T, run int) []row {
	rows, err := b.Database.Conn().QueryContext(t.Context(), fmt.Sprintf("select writer, place from target where run = %d order by seq", run))
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	var list []row
	for rows.Next() {
		var one row
		require.NoError(t, rows.Scan(&one.Writer, &one.Place))
		list = append(list, one)
	}
	require.NoError(t, rows.Err())
	return list
}

func (b *bench) skips(t *rapid.T, id core.JobExecutionID) []skip {
	items, err := b.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: id, Limit: 1000})
	require.NoError(t, err)
	var list []skip
	for _, k := range items {
		one := skip{Phase: k.Phase, Place: placeOf(t, k.Mark), Meta: k.Meta, Mark: string(k.Mark), Item: string(k.Item), Class: k.Class, Error: k.Error}
		if k.Raw != nil {
			one.Raw = k.Raw.Text
		}
		list = append(list, one)
	}
	return list
}

func placeOf(t *rapid.T, mark item.Position) int {
	reader, outcomes, err := chunk.ParseMark(mark)
	require.NoError(t, err)
	place := 0
	if reader != nil {
		require.NoError(t, json.Unmarshal(reader, &place))
	}
	return place + int(outcomes)
}

var distinct = regexp.MustCompile(`execution \d+|run-\d+|\.part\.[-0-9a-z]+`)

func (r *result) normalize(faults []fault, workers int) {
	slices.Sort(r.Unordered)
	for _, one := range []*string{&r.Error, &r.Position} {
		*one = distinct.ReplaceAllString(*one, "N")
	}
	for _, list := range [][]string{r.Trace, r.Unordered, r.Events} {
		for i, text := range list {
			list[i] = distinct.ReplaceAllString(text, "N")
		}
	}
	if r.Status != core.StatusCompleted {
		r.Unordered = nil // the work of other goroutines during the failure is not determined
	}
	// How many items of a cancelled chunk the goroutines that share it have processed is not determined.
	if workers > 1 && slices.ContainsFunc(faults, func(f fault) bool { return f.Kind == cancels }) {
		r.Counters, r.InHand = r.Counters.Sub(r.InHand), core.Counters{}
	}
	// A reader that ends its goroutine ends the step's goroutine if it does not read ahead: no listener of
	// reads is called.
	readerLeaves := func(f fault) bool { return f.At == atRead && f.Kind == leaves }
	if strings.Contains(r.Error, "ended its goroutine") && slices.ContainsFunc(faults, readerLeaves) {
		r.Error, r.Context, r.Trace, r.Events = "", "", nil, nil
	}
	// The error of a listener is lost with the step's goroutine.
	if strings.Contains(r.Error, "ended its goroutine") {
		r.Error, _, _ = strings.Cut(r.Error, " (listener ")
	}
}
