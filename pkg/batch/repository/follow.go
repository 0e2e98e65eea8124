package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// stagedSkip is a skipped item on its way to the repository. The item is a text,
// so that it stays as it is.
type stagedSkip struct {
	Phase     core.Phase `json:"phase"`
	Path      string     `json:"path,omitempty"`
	Line      int64      `json:"line,omitempty"`
	Mark      string     `json:"mark,omitempty"`
	Item      string     `json:"item,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
	SHA256    string     `json:"sha256,omitempty"`
	Class     string     `json:"class,omitempty"`
	Error     string     `json:"error,omitempty"`
}

// stage stores the skips beside the data, in the chunk's transaction (rule C12).
// They are numbered by the attempt's counters, so that each has a number once.
func (s *claimed) stage(ctx context.Context, conn tx.Conn, c core.Checkpoint) error {
	number := c.Counters.Skips() - int64(len(c.Skipped))
	for batch := range slices.Chunk(c.Skipped, s.rowsAtOnce(4)) {
		var args []any
		var rows []string
		for _, skip := range batch {
			number++
			if err := checkPosition(skip.Mark); err != nil {
				return fmt.Errorf("skipped item: %w", err)
			}
			text, err := json.Marshal(stagedSkip{
				Phase: skip.Phase, Path: skip.Meta.Path, Line: skip.Meta.Line, Mark: string(skip.Mark), Item: string(skip.Item),
				Truncated: skip.Truncated, SHA256: skip.SHA256, Class: skip.Class, Error: storable(skip.Error),
			})
			if err != nil {
				return fmt.Errorf("skipped item: %w", err)
			}
			rows = append(rows, s.row(len(args), 4))
			args = append(args, s.key.repository, int64(s.ref.ID), number, string(text))
		}
		statement := s.sql("INSERT INTO {checkpoint_skip} (repository, step_execution_id, number, item) VALUES " + strings.Join(rows, ", "))
		if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("store %d skipped items: %w", len(batch), err)
		}
	}
	return nil
}

// row is "(?, ?, MORE)" in the dialect, behind n bind variables.
func (p *place) row(n, columns int, more ...string) string {
	binds := append(make([]string, columns), more...)
	for i := range columns {
		binds[i] = p.variable(n + i + 1)
	}
	return "(" + strings.Join(binds, ", ") + ")"
}

// The number of bind variables in one INSERT of many rows. SQLite's driver takes a
// time for each that grows with their number, and there is no round trip to be saved:
// a row of 11 costs 22 µs in statements of 10 rows, and 1100 µs in one of 1000.
// PostgreSQL takes 9 µs in each, and saves round trips.
const (
	sqliteBinds = 165
	serverBinds = 5000
)

// rowsAtOnce is how many rows one INSERT takes.
func (p *place) rowsAtOnce(columns int) int {
	if p.db.Dialect() == tx.SQLite {
		return max(1, sqliteBinds/columns)
	}
	return max(1, serverBinds/columns)
}

// variable is the nth bind variable of a statement with many, in their order.
// SQLite looks a numbered one up among all before it, which takes minutes.
func (p *place) variable(n int) string {
	if p.db.Dialect() == tx.SQLite {
		return "?"
	}
	return p.db.Dialect().Placeholder(n)
}

// staged returns the skips beside the data of an attempt, in order. Only what is committed
// is seen: it is called outside of the chunk's transaction.
func (s *claimed) staged(ctx context.Context, id core.StepExecutionID) ([]core.SkippedItem, error) {
	var texts []string
	err := s.session(ctx).Raw(s.sql("SELECT item FROM {checkpoint_skip} WHERE repository = ? AND step_execution_id = ? ORDER BY number"),
		s.key.repository, id).Scan(&texts).Error
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
			Phase: k.Phase, Meta: core.Meta{Path: k.Path, Line: k.Line}, Mark: core.Position(k.Mark), Item: json.RawMessage(k.Item),
			Truncated: k.Truncated, SHA256: k.SHA256, Class: k.Class, Error: k.Error,
		}
	}
	return items, nil
}

// follow brings the record of the attempt that the row counts into line, and moves
// its staged skips into the repository: those that are not there yet, so that a
// move which was cut off is taken up again. hold updates the record and says
// whether it is there.
//
// The staged skips are moved while nobody adds to them: by the attempt itself
// between two commits, or by a later one that has claimed the step.
func (s *claimed) follow(ctx context.Context, row *checkpoint, hold func(ctx context.Context, row *checkpoint) (bool, error)) error {
	skips, err := s.staged(ctx, row.CountedID)
	if err != nil {
		return err
	}
	r := s.repository
	err = r.manager.Do(ctx, r.attr(), func(ctx context.Context) error {
		there, err := hold(ctx, row)
		if err != nil || !there || len(skips) == 0 {
			return err
		}
		return s.move(ctx, row, skips)
	})
	if err != nil || len(skips) == 0 {
		return err
	}
	err = s.session(ctx).Exec(s.sql("DELETE FROM {checkpoint_skip} WHERE repository = ? AND step_execution_id = ?"),
		s.key.repository, row.CountedID).Error
	if err != nil {
		return fmt.Errorf("remove staged skips: %w", err)
	}
	return nil
}

// move stores staged skips in the repository, behind those of the attempt that are
// there. The attempt's record is locked, so that nobody else does the same.
func (s *claimed) move(ctx context.Context, row *checkpoint, skips []core.SkippedItem) error {
	r := s.repository
	var have int64
	err := r.session(ctx).Raw(r.sql("SELECT count(*) FROM {skipped_item} WHERE step_execution_id = ?"), row.CountedID).Scan(&have).Error
	if err != nil {
		return fmt.Errorf("count stored skips: %w", err)
	}
	counters := row.counters()
	gone := counters.Skips() - int64(len(skips)) // staged once, and moved before
	if have < gone {
		have = gone
	}
	if left := skips[min(have-gone, int64(len(skips))):]; len(left) > 0 {
		return r.storeSkips(ctx, tx.ConnOf(ctx, r.db), row.CountedID, left)
	}
	return nil
}

// ofThis writes what the running attempt has committed into its record, under the
// guard of its owner, and hears whether a stop was asked for.
func (s *claimed) ofThis(ctx context.Context, row *checkpoint) (bool, error) {
	r := s.repository
	set, args := assign(counterColumns(), "%s = ?", counterValues(row.counters()))
	args = append(args, row.Position, row.Context, s.run.Ref.ID, s.run.Ref.Owner.String(), s.run.Ref.Epoch, core.StatusStarted)
	var stop []bool
	err := r.session(ctx).Raw(r.sql("UPDATE {step_execution} SET "+set+
		", position = ?, context = ? WHERE id = ? AND owner = ? AND epoch = ? AND status = ? RETURNING ")+r.stopAsked(), args...).Scan(&stop).Error
	if err == nil && len(stop) == 0 {
		err = core.ErrLostOwner
	}
	if err == nil && stop[0] && s.onStop != nil {
		s.onStop()
	}
	return err == nil, err
}

// ofEarlier writes what an earlier attempt had committed into its record, which is
// over. The record may know more: what the attempt counted when it failed by
// itself. Counters only grow, so the greater ones are right.
func (s *claimed) ofEarlier(ctx context.Context, row *checkpoint) (bool, error) {
	r := s.repository
	if err := s.countBefore(ctx, row); err != nil {
		return false, err
	}
	greater := "%[1]s = CASE WHEN %[1]s < CAST(? AS bigint) THEN CAST(? AS bigint) ELSE %[1]s END"
	var twice []any
	for _, value := range counterValues(row.counters()) {
		twice = append(twice, value, value)
	}
	set, args := assign(counterColumns(), greater, twice)
	done := r.session(ctx).Exec(r.sql("UPDATE {step_execution} SET "+set+" WHERE id = ?"), append(args, row.CountedID)...)
	return done.RowsAffected > 0, done.Error
}

// countBefore adds to what came before this attempt what the earlier one counted
// here and the repository did not know when this attempt began.
func (s *claimed) countBefore(ctx context.Context, row *checkpoint) error {
	if s.isOver(row.CountedID) { // nothing came before
		return nil
	}
	r := s.repository
	var rows []stepExecution
	err := r.session(ctx).Select(counterColumns()).Where("id = ?", row.CountedID).
		Clauses(clause.Locking{Strength: "NO KEY UPDATE"}).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return err
	}
	missed := ahead(rows[0].counters(), row.counters())
	if missed == (core.Counters{}) {
		return nil
	}
	before := s.run.Step.Before.Add(missed)
	text, err := encodeCounts(before)
	if err != nil {
		return err
	}
	done := r.session(ctx).Exec(r.sql("UPDATE {step_execution} SET before_counts = ? WHERE id = ? AND owner = ? AND epoch = ? AND status = ?"),
		text, s.run.Ref.ID, s.run.Ref.Owner.String(), s.run.Ref.Epoch, core.StatusStarted)
	if done.Error == nil && done.RowsAffected == 0 {
		return core.ErrLostOwner
	}
	if done.Error == nil {
		s.run.Step.Before = before
	}
	return done.Error
}

// ahead is by how much the counters found are greater than those known.
func ahead(known, found core.Counters) core.Counters {
	more := func(known, found int64) int64 { return max(found-known, 0) }
	return core.Counters{
		Read: more(known.Read, found.Read), Filter: more(known.Filter, found.Filter), Write: more(known.Write, found.Write),
		ReadSkip: more(known.ReadSkip, found.ReadSkip), ProcessSkip: more(known.ProcessSkip, found.ProcessSkip),
		WriteSkip: more(known.WriteSkip, found.WriteSkip),
		Commit:    more(known.Commit, found.Commit), Rollback: more(known.Rollback, found.Rollback),
	}
}

func assign(columns []string, form string, values []any) (string, []any) {
	sets := make([]string, len(columns))
	for i, column := range columns {
		sets[i] = fmt.Sprintf(form, column)
	}
	return strings.Join(sets, ", "), values
}
