package tasks

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// WithLogs returns the repository with a store in which it finds moved log text.
func (r *Repository) WithLogs(store taskports.LogStore) *Repository {
	with := *r
	with.store = store
	return &with
}

// MoveLogs implements taskports.Logs. A text is in the store before its row names the store: a process
// that is killed between the two leaves a copy, which the next call writes again.
func (r *Repository) MoveLogs(ctx context.Context, to taskports.LogStore, age time.Duration, limit int) (int, error) {
	var rows []struct {
		ID        int64
		AttemptID task.AttemptID
		Ordinal   int
		Kind      string
		Body      string
	}
	err := r.scan(ctx, &rows, "SELECT id, attempt_id, ordinal, kind, body FROM {task_log} WHERE body IS NOT NULL AND created_at < {later} ORDER BY created_at LIMIT ?",
		-age.Microseconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("find old log text: %w", err)
	}
	for i, row := range rows {
		ref, err := to.Put(ctx, fmt.Sprintf("attempt-%d-%d-%s.log", row.AttemptID, row.Ordinal, row.Kind), row.Body)
		if err == nil {
			_, err = r.exec(ctx, "UPDATE {task_log} SET body = NULL, log_ref = ? WHERE id = ? AND body IS NOT NULL", ref, row.ID)
		}
		if err != nil {
			return i, fmt.Errorf("move the log of attempt %d: %w", row.AttemptID, err)
		}
	}
	return len(rows), nil
}

// text returns the text of a log. For moved text that is not found here, it returns its location.
func (r *Repository) text(ctx context.Context, log taskLog) string {
	switch {
	case log.Body != nil:
		return *log.Body
	case r.store == nil:
		return "(moved to " + log.LogRef + ")"
	}
	text, err := r.store.Get(ctx, log.LogRef)
	if err != nil {
		return fmt.Sprintf("(moved to %s, which cannot be read here: %v)", log.LogRef, err)
	}
	return text
}
