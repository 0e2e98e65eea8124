package repository

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// markBatch is the number of skipped items that one statement marks: below the databases' limits of
// bind variables.
const markBatch = 1000

type skippedItem struct {
	ID              int64
	JobExecutionID  core.JobExecutionID
	StepExecutionID core.StepExecutionID
	Step            string
	Phase           core.Phase
	Path            string
	Line            int64
	ElementIndex    int64
	ElementRow      int64
	Mark            string
	Item            string
	Raw             string // JSON of an item.RawText; empty means none
	Truncated       bool
	Sha256          string
	Masked          bool
	ErrorClass      string
	ErrorText       string
	Fault           string              // JSON of a fault.Place; empty means none
	RedrivenBy      core.JobExecutionID // 0 for NULL
	CreatedAt       instant
}

func (s *skippedItem) record() core.SkippedItem {
	record := core.SkippedItem{
		ID: s.ID, JobExecutionID: s.JobExecutionID, StepExecutionID: s.StepExecutionID, Step: s.Step, Phase: s.Phase,
		Meta: item.Meta{Path: s.Path, Line: s.Line, Index: s.ElementIndex, Row: s.ElementRow}, Truncated: s.Truncated, SHA256: s.Sha256, Masked: s.Masked,
		Class: s.ErrorClass, Error: s.ErrorText, CreatedAt: s.CreatedAt.Time, RedrivenBy: s.RedrivenBy,
	}
	if s.Mark != "" {
		record.Mark = item.Position(s.Mark)
	}
	raw, err := decodeRaw(s.Raw)
	record.Raw = raw
	if json.Valid([]byte(s.Item)) {
		record.Item = json.RawMessage(s.Item)
	} else if s.Item != "" {
		err = errors.Join(err, errors.New("its stored item is not JSON"))
	}
	if err != nil {
		record.Unreadable = fmt.Errorf("skipped item %d: %w: %w", s.ID, ports.ErrUnreadable, err)
	}
	if json.Unmarshal([]byte(s.Fault), &record.Fault) != nil { // none, or a number was masked as a secret
		record.Fault = fault.Place{}
	}
	return record
}

// encodeFault returns "" for none. In a masked text a range would be wrong.
func encodeFault(at fault.Place, masked bool) string {
	if masked {
		at.From, at.To = 0, 0
	}
	text, err := json.Marshal(at)
	if err != nil || at == (fault.Place{}) { // it always has a JSON form
		return ""
	}
	return validText(string(text))
}

// encodeRaw returns the stored form of a text; empty means none.
func encodeRaw(raw *item.RawText) (string, error) {
	if raw == nil {
		return "", nil
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return "", fmt.Errorf("text of a skipped item: %w", err)
	}
	return string(data), nil
}

func decodeRaw(text string) (*item.RawText, error) {
	if text == "" {
		return nil, nil
	}
	raw := &item.RawText{}
	if err := json.Unmarshal([]byte(text), raw); err != nil {
		return nil, fmt.Errorf("its stored text: %w", err)
	}
	return raw, nil
}

// storeSkips inserts the skips that commit with a checkpoint (rule C12). The checkpoint has found
// its row, so the job execution is the step's.
func (s *store) storeSkips(ctx context.Context, conn tx.Conn, step core.StepExecutionID, skips []core.SkippedItem) error {
	for batch := range slices.Chunk(skips, s.rowsAtOnce(17)) {
		var args []any
		bind := func(value any) string {
			args = append(args, value)
			return s.bindVariable(len(args))
		}
		rows := make([]string, 0, len(batch))
		for _, k := range batch {
			if err := checkPosition(k.Mark); err != nil {
				return fmt.Errorf("skipped item: %w", err)
			}
			raw, err := encodeRaw(k.Raw)
			if err != nil {
				return err
			}
			masked := k.Masked || s.masks(raw)
			values := []string{
				"(SELECT job_execution_id FROM {step_execution} WHERE id = " + bind(int64(step)) + ")", bind(int64(step)),
				bind(string(k.Phase)), bind(validText(k.Meta.Path)), bind(k.Meta.Line), bind(k.Meta.Index), bind(k.Meta.Row),
				bind(string(k.Mark)), bind(validText(string(k.Item))),
				bind(raw), bind(k.Truncated), bind(k.SHA256), bind(storable(k.Class)), bind(storable(k.Error)), bind(masked || s.masks(string(k.Item))),
				bind(encodeFault(k.Fault, masked)), "{now}",
			}
			rows = append(rows, "("+strings.Join(values, ", ")+")")
		}
		text := s.sql(`INSERT INTO {skipped_item} (job_execution_id, step_execution_id, phase, path, line,
			element_index, element_row, mark, item, raw,
			truncated, sha256, error_class, error_text, masked, fault, created_at) VALUES ` + strings.Join(rows, ", "))
		if _, err := conn.ExecContext(ctx, text, s.masked(args)...); err != nil {
			return fmt.Errorf("store %d skipped items: %w", len(batch), err)
		}
	}
	return nil
}

// skips implements ports.Skips.
type skips struct{ store *store }

// SkippedItems implements ports.SkippedItems: one statement, by key, never by
// offset.
func (r *skips) SkippedItems(ctx context.Context, filter ports.SkipFilter) ([]core.SkippedItem, error) {
	if filter.Limit <= 0 {
		filter.Limit = defaultPageSize
	}
	where, from, order := r.skipsWhere(filter), skipTables, "k.id"
	if filter.Execution != 0 {
		order = "k.job_execution_id, k.id"
	}
	if filter.Window > 0 {
		window := &conditions{}
		window.add(true, ofExecutionAfter("k"), filter.Execution, filter.After, filter.Execution)
		from = "(SELECT * FROM {skipped_item} k WHERE " + window.text() + " ORDER BY " + order + " LIMIT ?) k" + skipSteps
		where.args = append(append(window.args, filter.Window), where.args...)
	}
	items, err := r.skipped(ctx, from, where.text()+" ORDER BY "+order+" LIMIT ?", append(where.args, filter.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list skipped items: %w", err)
	}
	return items, nil
}

// LastSkipped implements ports.SkipReader.
func (r *skips) LastSkipped(ctx context.Context, filter ports.SkipFilter) (id int64, err error) {
	where := r.skipsWhere(filter)
	if err := r.store.scan(ctx, &id, "SELECT COALESCE(MAX(k.id), 0) FROM "+skipTables+" WHERE "+where.text(), where.args...); err != nil {
		return 0, fmt.Errorf("find the last skipped item: %w", err)
	}
	return id, nil
}

// WindowEnd implements ports.Skips.
func (r *skips) WindowEnd(ctx context.Context, filter ports.SkipFilter) (id int64, err error) {
	where := &conditions{}
	where.add(true, ofExecutionAfter("k"), filter.Execution, filter.After, filter.Execution)
	if err := r.store.scan(ctx, &id, "SELECT k.id FROM {skipped_item} k WHERE "+where.text()+" ORDER BY k.job_execution_id, k.id LIMIT 1 OFFSET ?",
		append(where.args, filter.Window-1)...); err != nil {
		return 0, fmt.Errorf("find the end of a search of skipped items: %w", err)
	}
	return id, nil
}

const (
	skipSteps  = " JOIN {step_execution} s ON s.id = k.step_execution_id"
	skipTables = "{skipped_item} k" + skipSteps
)

func (r *skips) skipsWhere(filter ports.SkipFilter) *conditions {
	c := &conditions{}
	if filter.Execution != 0 {
		c.add(true, ofExecutionAfter("k"), filter.Execution, filter.After, filter.Execution)
	} else {
		c.add(true, "k.id > ?", filter.After)
	}
	c.add(filter.UpTo != 0, "k.id <= ?", filter.UpTo)
	c.add(filter.Instance != 0, "k.job_execution_id IN (SELECT id FROM {job_execution} WHERE instance_id = ?)", filter.Instance)
	c.add(filter.Job != "", "k.job_execution_id IN (SELECT id FROM {job_execution} WHERE job_name = ?)", filter.Job)
	part := core.PartName(filter.Step, "")
	c.add(filter.Step != "" && filter.Parts, "(s.name = ? OR substr(s.name, 1, ?) = ?)", filter.Step, utf8.RuneCountInString(part), part)
	c.add(filter.Step != "" && !filter.Parts, "s.name = ?", filter.Step)
	c.add(filter.Phase != "", "k.phase = ?", filter.Phase)
	c.add(filter.Index != 0, "k.element_index = ?", filter.Index)
	c.add(filter.IDs != nil, "k.id IN ?", filter.IDs)
	c.add(filter.Left, "k.redriven_by IS NULL")
	c.add(filter.Class != "", "k.error_class = ?", filter.Class)
	find := r.store.find()
	c.add(filter.Text != "", "("+find+"(lower(k.error_text), lower(?)) > 0 OR "+find+"(lower(k.item || ' ' || k.raw), lower(?)) > 0)", filter.Text, inJSON(filter.Text))
	return c
}

// inJSON is the text as a part of a JSON text.
func inJSON(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a text always has a form
		return text
	}
	quoted := b.String()
	return quoted[1 : len(quoted)-2]
}

// SkippedItem implements ports.SkippedItems.
func (r *skips) SkippedItem(ctx context.Context, id int64) (*core.SkippedItem, error) {
	items, err := r.skipped(ctx, skipTables, "k.id = ?", id)
	if err != nil {
		return nil, fmt.Errorf("read skipped item %d: %w", id, err)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("skipped item %d: %w", id, core.ErrNotFound)
	}
	return &items[0], nil
}

func (r *skips) skipped(ctx context.Context, from, where string, args ...any) ([]core.SkippedItem, error) {
	var rows []skippedItem
	err := r.store.scan(ctx, &rows, `SELECT k.id, k.job_execution_id, k.step_execution_id, s.name AS step, k.phase, k.path,
		k.line, k.element_index, k.element_row, k.mark, k.item, k.raw, k.truncated, k.sha256, k.masked, k.error_class, k.error_text, k.fault, COALESCE(k.redriven_by, 0) AS redriven_by, k.created_at
		FROM `+from+` WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	items := make([]core.SkippedItem, len(rows))
	for i := range rows {
		items[i] = rows[i].record()
	}
	return items, nil
}

// MarkRedriven implements ports.SkippedItems. It must run in a transaction (tx.ErrNoTransaction
// otherwise): the one of the chunk that writes the items.
func (r *skips) MarkRedriven(ctx context.Context, by core.JobExecutionID, ids []int64) error {
	if _, ok := tx.From(ctx, r.store.db.Name()); !ok {
		return fmt.Errorf("mark redriven items in database %s: %w", r.store.db.Name(), tx.ErrNoTransaction)
	}
	for batch := range slices.Chunk(ids, markBatch) {
		done := r.store.exec(ctx, "UPDATE {skipped_item} SET redriven_by = ? WHERE id IN ? AND redriven_by IS NULL", by, batch)
		if done.Error != nil {
			return fmt.Errorf("mark redriven items: %w", done.Error)
		}
		if done.RowsAffected != int64(len(batch)) {
			return fmt.Errorf("mark redriven items %d to %d: %w", batch[0], batch[len(batch)-1], ports.ErrRedriven)
		}
	}
	return nil
}
