package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// stagedSkip is a skipped item that waits to be moved to the repository. The item is stored as
// text, so its bytes stay unchanged.
type stagedSkip struct {
	Phase     core.Phase    `json:"phase"`
	Path      string        `json:"path,omitempty"`
	Line      int64         `json:"line,omitempty"`
	Index     int64         `json:"index,omitempty"`
	Row       int64         `json:"row,omitempty"`
	Mark      string        `json:"mark,omitempty"`
	Item      string        `json:"item,omitempty"`
	Raw       *item.RawText `json:"raw,omitempty"`
	Truncated bool          `json:"truncated,omitempty"`
	Masked    bool          `json:"masked,omitempty"`
	SHA256    string        `json:"sha256,omitempty"`
	Class     string        `json:"class,omitempty"`
	Error     string        `json:"error,omitempty"`
	Fault     fault.Place   `json:"fault,omitzero"`
}

// stageSkips stores the skips in the database of the data, in the chunk's transaction (rule C12).
// They are numbered by the attempt's counters, so each number is used once.
func (s *claimed) stageSkips(ctx context.Context, conn tx.Conn, c ports.Checkpoint) error {
	number := c.Counters.Skips() - int64(len(c.Skipped))
	for batch := range slices.Chunk(c.Skipped, s.store.rowsAtOnce(4)) {
		var args []any
		var rows []string
		for _, skip := range batch {
			number++
			if err := checkPosition(skip.Mark); err != nil {
				return fmt.Errorf("skipped item: %w", err)
			}
			raw, err := encodeRaw(skip.Raw)
			if err != nil {
				return err
			}
			text, err := json.Marshal(stagedSkip{
				Masked: s.store.masks(raw) || s.store.masks(string(skip.Item)),
				Phase:  skip.Phase, Path: skip.Meta.Path, Line: skip.Meta.Line, Index: skip.Meta.Index, Row: skip.Meta.Row, Mark: string(skip.Mark), Item: string(skip.Item),
				Raw: skip.Raw, Truncated: skip.Truncated, SHA256: skip.SHA256, Class: skip.Class, Error: storable(skip.Error), Fault: skip.Fault,
			})
			if err != nil {
				return fmt.Errorf("skipped item: %w", err)
			}
			rows = append(rows, s.store.valuesRow(len(args), 4))
			args = append(args, scopeOf(s.key.repository, s.identity), int64(s.ref.ID), number, s.store.mask(string(text)))
		}
		statement := s.store.sql("INSERT INTO {checkpoint_skip} (repository, step_execution_id, number, item) VALUES " + strings.Join(rows, ", "))
		if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("store %d skipped items: %w", len(batch), err)
		}
	}
	return nil
}

// stagedSkips returns the staged skips of an attempt, in order. It is called outside the chunk's
// transaction, so it reads committed ones only.
func (s *claimed) stagedSkips(ctx context.Context, id core.StepExecutionID) ([]core.SkippedItem, error) {
	var texts []string
	err := s.store.scan(ctx, &texts, "SELECT item FROM {checkpoint_skip} WHERE repository = ? AND step_execution_id = ? ORDER BY number",
		scopeOf(s.key.repository, s.identity), id)
	if err != nil {
		return nil, fmt.Errorf("read staged skips: %w", err)
	}
	items := make([]core.SkippedItem, len(texts))
	for i, text := range texts {
		var k stagedSkip
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			return nil, fmt.Errorf("read staged skips: %w", err)
		}
		items[i] = core.SkippedItem{
			Phase: k.Phase, Meta: item.Meta{Path: k.Path, Line: k.Line, Index: k.Index, Row: k.Row}, Mark: item.Position(k.Mark), Item: json.RawMessage(k.Item),
			Raw: k.Raw, Truncated: k.Truncated, Masked: k.Masked, SHA256: k.SHA256, Class: k.Class, Error: k.Error, Fault: k.Fault,
		}
	}
	return items, nil
}

// syncRecord updates the repository's record of the attempt that the row counts, and moves the
// attempt's staged skips into the repository. It moves only those that are not there yet, so an
// interrupted call can be repeated. update writes the record and reports whether it exists.
//
// No process adds staged skips meanwhile: the caller is the attempt itself between two commits, or
// a later attempt that has claimed the step.
func (s *claimed) syncRecord(ctx context.Context, row *checkpoint, update func(ctx context.Context, row *checkpoint) (bool, error)) error {
	skips, err := s.stagedSkips(ctx, row.CountedID)
	if err != nil {
		return err
	}
	err = s.history.transact(ctx, func(ctx context.Context) error {
		found, err := update(ctx, row)
		if err != nil || !found || len(skips) == 0 {
			return err
		}
		return s.moveSkips(ctx, row, skips)
	})
	if err != nil || len(skips) == 0 {
		return err
	}
	err = s.store.exec(ctx, "DELETE FROM {checkpoint_skip} WHERE repository = ? AND step_execution_id = ?",
		scopeOf(s.key.repository, s.identity), row.CountedID).Error
	if err != nil {
		return fmt.Errorf("remove staged skips: %w", err)
	}
	return nil
}

// moveSkips stores the staged skips that the repository does not have yet. The attempt's record is
// locked, so no other process does the same.
func (s *claimed) moveSkips(ctx context.Context, row *checkpoint, skips []core.SkippedItem) error {
	var have int64
	err := s.history.scan(ctx, &have, "SELECT count(*) FROM {skipped_item} WHERE step_execution_id = ?", row.CountedID)
	if err != nil {
		return fmt.Errorf("count stored skips: %w", err)
	}
	counters := row.Counts.counters()
	gone := counters.Skips() - int64(len(skips)) // staged once, already moved
	if have < gone {
		have = gone
	}
	if left := skips[min(have-gone, int64(len(skips))):]; len(left) > 0 {
		return s.history.storeSkips(ctx, tx.ConnOf(ctx, s.history.db), row.CountedID, left)
	}
	return nil
}

// updateRunning writes the committed state of the running attempt into its record, and calls onStop
// if a stop was requested. It fails with core.ErrLostOwner if the guard finds no record.
func (s *claimed) updateRunning(ctx context.Context, row *checkpoint) (bool, error) {
	set, args := setList(counterColumns(), "%s = ?", counterValues(row.Counts.counters()))
	args = append(args, row.Position, row.Context, s.run.Ref.ID, s.run.Ref.Owner.String(), s.run.Ref.Epoch, core.StatusStarted)
	var stop []bool
	err := s.history.scan(ctx, &stop, "UPDATE {step_execution} SET "+set+
		", position = ?, context = ? WHERE id = ? AND owner = ? AND epoch = ? AND status = ? RETURNING "+s.history.stopRequested(), args...)
	if err == nil && len(stop) == 0 {
		err = core.ErrLostOwner
	}
	if err == nil && stop[0] && s.onStop != nil {
		s.onStop()
	}
	return err == nil, err
}

// updateEarlier writes the committed state of an ended attempt into its record. The record may have
// greater counters, if the attempt ended by itself. Counters only grow, so the greater ones are
// right.
func (s *claimed) updateEarlier(ctx context.Context, row *checkpoint) (bool, error) {
	if err := s.countBefore(ctx, row); err != nil {
		return false, err
	}
	greater := "%[1]s = CASE WHEN %[1]s < CAST(? AS bigint) THEN CAST(? AS bigint) ELSE %[1]s END"
	var twice []any
	for _, value := range counterValues(row.Counts.counters()) {
		twice = append(twice, value, value)
	}
	set, args := setList(counterColumns(), greater, twice)
	done := s.history.exec(ctx, "UPDATE {step_execution} SET "+set+" WHERE id = ?", append(args, row.CountedID)...)
	return done.RowsAffected > 0, done.Error
}

// countBefore adds to this attempt's starting counters the work that the earlier attempt counted
// here and that the repository did not know when this attempt began.
func (s *claimed) countBefore(ctx context.Context, row *checkpoint) error {
	if s.isSuperseded(row.CountedID) { // no earlier work counts
		return nil
	}
	var rows []stepExecution
	err := s.history.session(ctx).Select(counterColumns()).Where("id = ?", row.CountedID).
		Clauses(clause.Locking{Strength: "NO KEY UPDATE"}).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return err
	}
	missed := countersAhead(rows[0].Counts.counters(), row.Counts.counters())
	if missed == (core.Counters{}) {
		return nil
	}
	before := s.run.Step.Before.Add(missed)
	text, err := encodeCounts(before)
	if err != nil {
		return err
	}
	done := s.history.exec(ctx, "UPDATE {step_execution} SET before_counts = ? WHERE id = ? AND owner = ? AND epoch = ? AND status = ?",
		text, s.run.Ref.ID, s.run.Ref.Owner.String(), s.run.Ref.Epoch, core.StatusStarted)
	if done.Error == nil && done.RowsAffected == 0 {
		return core.ErrLostOwner
	}
	if done.Error == nil {
		s.run.Step.Before = before
	}
	return done.Error
}

// countersAhead returns found minus known, the counters that the repository lacks.
func countersAhead(known, found core.Counters) core.Counters {
	more := func(known, found int64) int64 { return max(found-known, 0) }
	return core.Counters{
		Read: more(known.Read, found.Read), Filter: more(known.Filter, found.Filter), Write: more(known.Write, found.Write),
		ReadSkip: more(known.ReadSkip, found.ReadSkip), ProcessSkip: more(known.ProcessSkip, found.ProcessSkip),
		WriteSkip: more(known.WriteSkip, found.WriteSkip),
		Commit:    more(known.Commit, found.Commit), Rollback: more(known.Rollback, found.Rollback),
	}
}

func setList(columns []string, form string, values []any) (string, []any) {
	sets := make([]string, len(columns))
	for i, column := range columns {
		sets[i] = fmt.Sprintf(form, column)
	}
	return strings.Join(sets, ", "), values
}
