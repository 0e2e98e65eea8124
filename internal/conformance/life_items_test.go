package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (r *lifeRun) chunkStep(s *lifeStep) (model.Step, error) {
	if err := r.makeTable(); err != nil {
		return nil, err
	}
	if _, err := r.prepare(s); err != nil {
		return nil, err
	}
	classes, err := newClasses(&chunkScenario{})
	if err != nil {
		return nil, err
	}
	config := chunk.Config{
		Name: s.Name, Size: max(s.ChunkSize, 1), Database: &throwingDatabase{r.engine.Database, s.TxThrows},
		Retry: chunk.Retry{Limit: s.RetryLimit, Retryable: classes.retryable},
		Skip:  chunk.LimitSkip{Limit: int64(s.SkipLimit), Skippable: classes.skippable},
		Assemble: func(ctx context.Context, run *model.StepRun) (chunk.Parts, error) {
			if err := r.prelude(ctx, run, s); err != nil {
				return chunk.Parts{}, err
			}
			return r.parts(s, run.Step.Name), nil
		},
	}
	if s.Partitions == nil {
		config.Promote, config.Listeners = s.promotion(), r.listeners(s)
	}
	built, err := chunk.New(config)
	if err != nil {
		return nil, err
	}
	return &doubtfulStep{built, slices.Contains(s.TxThrows, "commit") && slices.Contains(s.TxThrows, "rollback")}, nil
}

// prelude follows the step's script before its items: a step that completes continues with them.
func (r *lifeRun) prelude(ctx context.Context, run *model.StepRun, s *lifeStep) error {
	if run.Step.Context == nil {
		run.Step.Context = core.NewExecutionContext()
	}
	c := &core.StepContribution{Context: run.Step.Context, Step: *run.Step, View: run.View(), Stop: run.Services.Stop.Done()}
	err := r.play(ctx, c, s)
	run.Step.ExitCode = c.ExitCode
	return err
}

func (r *lifeRun) makeTable() error {
	if r.table {
		return nil
	}
	r.table = true
	return makeItemTable(r.t.Context(), r.engine.Database, r.name)
}

// parts are the components of one execution. Their record, and the faults that have happened, continue over
// all launches.
func (r *lifeRun) parts(s *lifeStep, name string) chunk.Parts {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, known := r.records[name]
	if !known {
		seen = newRecord(s.faultsOf(name))
		r.records[name] = seen
	}
	target := &writer{record: seen, database: r.engine.Database, insert: insertInto(r.engine.Database, r.name)}
	parts := chunk.Parts{
		Reader:     item.EraseReader[entry](&throwingStream{&positioned{&reader{record: seen, list: s.itemsOf(name)}}, s.StreamThrows}),
		Processors: []item.Processor{item.EraseProcessor[entry, *product](&processor{record: seen})},
		Writers:    []item.Writer{item.EraseWriter[*product](target)},
	}
	if slices.Contains(s.TxThrows, "commit_rolled_back") {
		parts.Writers = append(parts.Writers, item.EraseWriter[*product](&orphan{r.engine.Database, r.name}))
	}
	return parts
}

// faultsOf are the faults of a step, or of one of its partitions. A fault without its own class cannot be
// skipped or retried.
func (s *lifeStep) faultsOf(name string) []fault {
	var list []fault
	for _, f := range s.faults() {
		concerned := f.Partitions == nil && (f.Partition == "" || core.PartName(s.Name, f.Partition) == name)
		for _, part := range f.Partitions {
			concerned = concerned || core.PartName(s.Name, part) == name
		}
		if !concerned {
			continue
		}
		one := fault{
			Phase: f.Phase, Item: f.Item, Times: f.Times, ErrorClass: f.ErrorClass,
			OnCall: f.OnCall, Attempts: f.Attempts, MinBatch: f.MinBatch, Wrapped: f.Wrapped,
		}
		if f.Index != nil {
			one.Item = s.list()[*f.Index-f.first(s)]
		}
		if one.ErrorClass == "" {
			one.ErrorClass = "fatal"
		}
		list = append(list, one)
	}
	return list
}

type throwingStream struct {
	*positioned
	throws texts
}

func (s *throwingStream) fails(call string) error {
	if slices.Contains(s.throws, call) {
		return fmt.Errorf("the scenario says that %s throws", call)
	}
	return nil
}

func (s *throwingStream) Open(ctx context.Context, at item.Position) error {
	return errors.Join(s.positioned.Open(ctx, at), s.fails("open"))
}

func (s *throwingStream) Position() (item.Position, error) {
	at, err := s.positioned.Position()
	return at, errors.Join(err, s.fails("update"))
}

func (s *throwingStream) Close(ctx context.Context) error {
	return errors.Join(s.positioned.Close(ctx), s.fails("close"))
}

// throwingDatabase is a database that loses the answer to a COMMIT, or answers with an error.
type throwingDatabase struct {
	tx.Database
	throws texts
}

func (d *throwingDatabase) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	h, err := d.Database.Begin(ctx, attr)
	if err != nil {
		return nil, err
	}
	return &throwingHandle{h, d.throws}, nil
}

type throwingHandle struct {
	tx.Handle
	throws texts
}

var errLost = errors.New("the scenario says that the answer is lost")

// Commit does not reach the database: the transaction's work is lost with its connection.
func (h *throwingHandle) Commit() error {
	if slices.Contains(h.throws, "commit") {
		return errors.Join(errLost, h.Handle.Rollback())
	}
	return h.Handle.Commit()
}

func (h *throwingHandle) Rollback() error {
	err := h.Handle.Rollback()
	if slices.Contains(h.throws, "rollback") {
		return errors.Join(errLost, err)
	}
	return err
}

// doubtfulStep is a step of items that cannot query, when in doubt, which items are committed.
type doubtfulStep struct {
	*chunk.Step
	doubtful bool
}

func (s *doubtfulStep) Execute(ctx context.Context, run *model.StepRun) error {
	if s.doubtful {
		run.Services.Checkpoints = silent{run.Services.Checkpoints}
	}
	return s.Step.Execute(ctx, run)
}

// silent does not return the committed checkpoint.
type silent struct{ ports.CheckpointStore }

func (silent) Reclaim(context.Context, ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	return ports.StepRef{}, ports.Checkpoint{}, errLost
}

// orphan writes a row that the database refuses when it commits.
type orphan struct {
	database tx.Database
	table    string
}

func (o *orphan) Write(ctx context.Context, _ []*product) error {
	_, err := tx.ConnOf(ctx, o.database).ExecContext(ctx, "insert into "+o.table+"_child (parent) values (99)")
	return err
}

// makeItemTable makes a table of items, and one with rows that need others at the commit.
func makeItemTable(ctx context.Context, db tx.Database, name string) error {
	sequence, deferred := "bigserial primary key", " deferrable initially deferred"
	if db.Dialect() == tx.MySQL { // it checks at once
		sequence, deferred = "bigint auto_increment primary key", ""
	}
	if db.Dialect() == tx.SQLite {
		sequence = "integer primary key autoincrement"
	}
	for _, statement := range []string{
		fmt.Sprintf("create table %s (seq %s, place bigint not null, value text not null)", name, sequence),
		fmt.Sprintf("create table %s_parent (id bigint primary key)", name),
		fmt.Sprintf("create table %s_child (parent bigint references %[1]s_parent (id)%s)", name, deferred),
	} {
		if _, err := db.Conn().ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func insertInto(db tx.Database, table string) string {
	return fmt.Sprintf("insert into %s (place, value) values (%s, %s)", table, db.Dialect().Placeholder(1), db.Dialect().Placeholder(2))
}

// itemsOf reads the committed items in the order in which they were written.
func itemsOf(ctx context.Context, db tx.Database, table string) (list []string, err error) {
	rows, err := db.Conn().QueryContext(ctx, "select value from "+table+" order by seq")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = []string{}
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, rows.Err()
}

func (r *lifeRun) written() []string {
	r.t.Helper()
	if !r.table {
		return []string{}
	}
	list, err := itemsOf(r.t.Context(), r.engine.Database, r.name)
	require.NoError(r.t, err)
	return list
}
