package repository

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// logPageSize is the default size of a page of a log, and logWindow the number of lines that one page
	// reads at most.
	logPageSize = 500
	logWindow   = 10_000
	// logAgain bounds the newest lines of an execution in which a batch with a lost answer is looked for:
	// others may have written since.
	logAgain = 10_000
	// logDeleted is the number of lines that one transaction deletes.
	logDeleted = 5_000
)

// logs implements ports.Logs.
type logs struct{ store *store }

// AppendLog implements ports.LogWriter. The row of an execution's size orders its writers: the numbers of lines
// become visible in their order. All writers lock these rows in the order of the executions.
func (r *logs) AppendLog(ctx context.Context, batches []ports.LogBatch) (sizes map[core.JobExecutionID]ports.LogSize, err error) {
	batches = slices.SortedFunc(slices.Values(batches), func(a, b ports.LogBatch) int { return cmp.Compare(a.Execution, b.Execution) })
	if sizes, done, err := r.appendAtOnce(ctx, batches); done || err != nil {
		return sizes, err
	}
	err = r.store.transact(ctx, func(ctx context.Context) error {
		sizes = map[core.JobExecutionID]ports.LogSize{}
		var lines []ports.LogLine
		for _, b := range batches {
			size, exists, err := r.extend(ctx, &b)
			if err != nil {
				return err
			}
			if !exists {
				continue
			}
			sizes[b.Execution] = size
			for i := range b.Lines {
				b.Lines[i].Execution, b.Lines[i].Seq = b.Execution, size.Lines-int64(len(b.Lines)-i-1)
			}
			lines = append(lines, b.Lines...)
		}
		return r.insert(ctx, lines)
	})
	if err != nil {
		return nil, fmt.Errorf("store the logs of %d executions: %w", len(batches), err)
	}
	return sizes, nil
}

type logSizeRow struct {
	LineCount, ByteCount, Thinned, OverBound, Lost int64
}

func (s logSizeRow) size() ports.LogSize {
	return ports.LogSize{Lines: s.LineCount, Bytes: s.ByteCount, LeftOut: ports.LogLeftOut{Thinned: s.Thinned, Bound: s.OverBound, Lost: s.Lost}}
}

// extend adds the batch to the size of the execution's log, without the lines that are stored already.
func (r *logs) extend(ctx context.Context, b *ports.LogBatch) (size ports.LogSize, exists bool, err error) {
	if b.Again && len(b.Lines) > 0 {
		var known int64
		// locked: the writer's own earlier transaction may still be at work
		if _, err := r.add(ctx, b.Execution, logSizeRow{}); err != nil {
			return size, false, err
		}
		err := r.store.scan(ctx, &known, `SELECT COALESCE(MAX(number), 0) FROM (SELECT writer, number FROM {log_line} WHERE job_execution_id = ?
			ORDER BY seq DESC LIMIT ?) newest WHERE writer = ?`, b.Execution, logAgain, b.Lines[0].Writer)
		if err != nil {
			return size, false, err
		}
		stored := slices.IndexFunc(b.Lines, func(l ports.LogLine) bool { return l.Number > known })
		if stored < 0 {
			stored = len(b.Lines)
		}
		if stored > 0 { // in one transaction with these
			b.Lines, b.LeftOut = b.Lines[stored:], ports.LogLeftOut{}
		}
	}
	rows, err := r.add(ctx, b.Execution, sizeOf(b))
	if err != nil || len(rows) == 0 {
		return size, false, err
	}
	return rows[0].size(), true, nil
}

func sizeOf(b *ports.LogBatch) logSizeRow {
	size := logSizeRow{LineCount: int64(len(b.Lines)), Thinned: b.LeftOut.Thinned, OverBound: b.LeftOut.Bound, Lost: b.LeftOut.Lost}
	for i := range b.Lines {
		size.ByteCount += b.Lines[i].Bytes()
	}
	return size
}

// addLog adds to the size of a log, with the bind variables of added.
const addLog = `INSERT INTO {execution_log} AS l (job_execution_id, execution, line_count, byte_count, thinned, over_bound, lost)
		SELECT id, id, CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint) FROM {job_execution} WHERE id = ?
		ON CONFLICT (job_execution_id) DO UPDATE SET line_count = l.line_count + excluded.line_count, byte_count = l.byte_count + excluded.byte_count,
			thinned = l.thinned + excluded.thinned, over_bound = l.over_bound + excluded.over_bound, lost = l.lost + excluded.lost
		RETURNING line_count, byte_count, thinned, over_bound, lost`

func (s logSizeRow) added(id core.JobExecutionID) []any {
	return []any{s.LineCount, s.ByteCount, s.Thinned, s.OverBound, s.Lost, id}
}

func (r *logs) add(ctx context.Context, id core.JobExecutionID, more logSizeRow) (rows []logSizeRow, err error) {
	err = r.store.scan(ctx, &rows, addLog, more.added(id)...)
	return rows, err
}

// appendAtOnce appends one batch with one statement.
func (r *logs) appendAtOnce(ctx context.Context, batches []ports.LogBatch) (sizes map[core.JobExecutionID]ports.LogSize, done bool, err error) {
	if len(batches) != 1 || batches[0].Again || len(batches[0].Lines) == 0 || len(batches[0].Lines) > r.store.rowsAtOnce(logColumns) || !r.store.alone(ctx) {
		return nil, false, nil
	}
	b := &batches[0]
	for i := range b.Lines {
		b.Lines[i].Execution, b.Lines[i].Seq = b.Execution, int64(i-len(b.Lines)+1)
	}
	once := &atOnce{store: r.store}
	once.add("sized", addLog, sizeOf(b).added(b.Execution)...)
	once.add("written", insertLog+` SELECT v.id, sized.line_count + v.seq, v.step_id, v.step, v.part, v.process, v.writer, v.number, v.level, v.at, v.event, v.message, v.attributes
		FROM sized, (VALUES (CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), ?, ?, ?, ?, CAST(? AS bigint), CAST(? AS integer), CAST(? AS timestamptz), ?, ?, ?)`+
		strings.Repeat(logRow, len(b.Lines)-1)+`) v (id, seq, step_id, step, part, process, writer, number, level, at, event, message, attributes)`, logValues(b.Lines)...)
	var rows []logSizeRow
	err = gormtx.Scan(once.statement(ctx, "SELECT * FROM sized"), &rows)
	switch {
	case mustRepeat(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("store the log of execution %d: %w", b.Execution, err)
	}
	sizes = map[core.JobExecutionID]ports.LogSize{}
	for _, row := range rows {
		sizes[b.Execution] = row.size()
	}
	return sizes, true, nil
}

const (
	logColumns = 13
	logRow     = ", (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	insertLog  = "INSERT INTO {log_line} (job_execution_id, seq, step_execution_id, step, part, process, writer, number, level, at, event, message, attributes)"
)

func logValues(lines []ports.LogLine) []any {
	args := make([]any, 0, logColumns*len(lines))
	for _, l := range lines {
		args = append(args, l.Execution, l.Seq, l.StepExecution, validText(l.Step), validText(l.Part), validText(l.Process), l.Writer, l.Number,
			int(l.Level), instant{Time: l.At}, validText(l.Event), validText(l.Message), validText(l.Attributes))
	}
	return args
}

func (r *logs) insert(ctx context.Context, lines []ports.LogLine) error {
	for rows := range slices.Chunk(lines, r.store.rowsAtOnce(logColumns)) {
		if err := r.store.exec(ctx, insertLog+" VALUES "+strings.Repeat(logRow, len(rows))[len(", "):], logValues(rows)...).Error; err != nil {
			return err
		}
	}
	return nil
}

type logLineRow struct {
	Seq             int64
	StepExecutionID core.StepExecutionID
	Step, Part      string
	Process         string
	Level           int
	At              instant
	Event           string
	Message         string
	Attributes      string
}

// LogPage implements ports.LogReader: two statements, by key.
func (r *logs) LogPage(ctx context.Context, filter ports.LogFilter) (page ports.LogPage, err error) {
	if filter.Limit <= 0 {
		filter.Limit = logPageSize
	}
	var sizes []logSizeRow
	err = r.store.scan(ctx, &sizes, "SELECT line_count, byte_count, thinned, over_bound, lost FROM {execution_log} WHERE job_execution_id = ?", filter.Execution)
	if err != nil {
		return page, fmt.Errorf("read the size of the log of execution %d: %w", filter.Execution, err)
	}
	if len(sizes) > 0 {
		page.Size = sizes[0].size()
	}
	page.From, page.To = filter.After+1, min(filter.After+logWindow, page.Size.Lines)
	direction := "ASC"
	if filter.Backward {
		page.To = page.Size.Lines
		if filter.Before > 0 {
			page.To = min(page.To, filter.Before-1)
		}
		page.From, direction = max(1, page.To-logWindow+1), "DESC"
	}
	if page.From > page.To {
		page.From = page.To + 1
		return page, nil
	}
	var rows []logLineRow
	where := r.where(filter, page.From, page.To)
	err = r.store.scan(ctx, &rows, `SELECT seq, step_execution_id, step, part, process, level, at, event, message, attributes FROM {log_line}
		WHERE `+where.text()+" ORDER BY seq "+direction+" LIMIT ?", append(where.args, filter.Limit)...)
	if err != nil {
		return page, fmt.Errorf("read the log of execution %d: %w", filter.Execution, err)
	}
	if len(rows) == filter.Limit { // the rest is for the next page
		if filter.Backward {
			page.From = rows[len(rows)-1].Seq
		} else {
			page.To = rows[len(rows)-1].Seq
		}
	}
	if filter.Backward {
		slices.Reverse(rows)
	}
	for _, row := range rows {
		page.Lines = append(page.Lines, ports.LogLine{
			Seq: row.Seq, Execution: filter.Execution, StepExecution: row.StepExecutionID, Step: row.Step, Part: row.Part, Process: row.Process,
			Level: slog.Level(row.Level), At: row.At.Time, Event: row.Event, Message: row.Message, Attributes: row.Attributes,
		})
	}
	return page, nil
}

func (r *logs) where(filter ports.LogFilter, from, to int64) *conditions {
	c := &conditions{}
	c.add(true, "job_execution_id = ? AND seq BETWEEN ? AND ?", filter.Execution, from, to)
	c.add(filter.Step != "", "step = ?", filter.Step)
	c.add(filter.Part != "", "part = ?", filter.Part)
	c.add(filter.Level > ports.AnyLevel, "level >= ?", int(filter.Level))
	find := r.store.find()
	c.add(filter.Text != "", find+"(lower(message || ' ' || event || ' ' || attributes), lower(?)) > 0", filter.Text)
	return c
}

// deletePurgedLogs deletes the lines of executions that no longer exist, each batch in a transaction of its own.
func (s *store) deletePurgedLogs(ctx context.Context) error {
	for {
		var id int64
		if err := s.scan(ctx, &id, "SELECT COALESCE(MIN(job_execution_id), 0) FROM {execution_log} WHERE execution IS NULL"); err != nil || id == 0 {
			return err
		}
		for left := true; left; {
			deleted := s.exec(ctx, `DELETE FROM {log_line} WHERE job_execution_id = ? AND seq <= (SELECT seq FROM (SELECT COALESCE(MIN(seq), 0) AS seq FROM {log_line} WHERE job_execution_id = ?) AS first) + ?`,
				id, id, logDeleted-1)
			if deleted.Error != nil {
				return deleted.Error
			}
			left = deleted.RowsAffected > 0
		}
		if err := s.exec(ctx, "DELETE FROM {execution_log} WHERE job_execution_id = ? AND execution IS NULL", id).Error; err != nil {
			return err
		}
	}
}
