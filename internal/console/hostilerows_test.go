package console_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// columns have texts of the history that other processes, their versions or an administrator wrote: names
// of processes, workers and people, reasons, errors, results.
func columns() map[string][]string {
	return map[string][]string{
		"audit":               {"actor", "detail", "person"},
		"job_execution":       {"exit_code", "error_text", "owner", "gate", "definition_text", "definition_path"},
		"job_execution_param": {"value"},
		"step_execution":      {"exit_code", "error_text", "owner", "gate"},
		"flow_visit":          {"verdict", "target"},
		"skipped_item":        {"path", "item", "raw", "error_class", "error_text"},
		"log_line":            {"step", "part", "process", "event", "message"},
		"task":                {"type", "worker", "last_error", "idempotency_key"},
		"task_attempt":        {"worker", "outcome", "reason"},
		"task_audit":          {"act", "actor", "detail", "person"},
		"task_group":          {"title", "decider", "idempotency_key"},
		"worker":              {"name", "types", "version", "labels", "owner"},
		"event":               {"topic", "payload", "last_error"},
		"setting":             {"value", "updated_by"},
		"leader":              {"holder"},
	}
}

// Whatever texts are in the history, no page fails for them.
func TestHostileRowsOfTheHistoryAreInert(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		failed := text(s.run("load", map[string]string{"input": "bad.csv"}))
		parts := text(s.run("parts", nil))
		accepted, err := s.app.Tasks.Submit(t.Context(), task.Submission{Title: "one", Tasks: []task.Spec{{Type: "shell", Payload: raw(t, map[string]any{"command": "echo x"})}}})
		require.NoError(t, err)
		one := strings.NewReplacer("{execution}", failed, "{job}", "load", "{skip}", "1", "{task}", text64(int64(accepted.Tasks[0])), "{group}", text64(int64(accepted.Group)), "{$}", "")
		other := strings.NewReplacer("{execution}", parts, "{job}", "parts", "{skip}", "2", "{task}", "1", "{group}", "1", "{$}", "")
		db := s.database()
		insertOddRows(t, db)
		for table, names := range columns() {
			for k, column := range names {
				payload := payloads()[(len(table)*7+k*5)%50]
				set(t, db, "surfin_"+table, column, payload)
			}
		}
		for i, payload := range payloads() {
			if i%7 > 0 || len(payload) > 100_000 || i%3 > 0 && isFew(url) {
				continue
			}
			for table, names := range columns() {
				set(t, db, "surfin_"+table, names[(i/7)%len(names)], payload)
			}
			for _, pattern := range console.Patterns() {
				for _, path := range []string{one.Replace(pattern), other.Replace(pattern)} {
					got := s.get(path)
					require.Less(t, got.status, http.StatusInternalServerError, "%s %.50q\n%s\n%.3000s", path, payload, s.log, got.text)
					requireHarmless(t, got, payload, false)
				}
			}
		}
	})
}

// insertOddRows adds rows that the engine of this process does not write by itself here.
func insertOddRows(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{
		"insert into surfin_setting (name, value, updated_at, updated_by) select 'history_retention_days', '30', created_at, 'x' from surfin_job_execution where id = 1",
		"insert into surfin_event (topic, subject, dedupe_key, payload, offers, offer_after, last_error, created_at, dead_at) select 'x', 1, 'k', '{}', 3, 0, 'x', created_at, created_at from surfin_job_execution where id = 1",
		"insert into surfin_worker (name, capacity, types, parts, version, started_at, heartbeat_at, lease_until) select 'w', 1, '[]', false, 'v', created_at, created_at, created_at from surfin_job_execution where id = 1",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// set changes a column of all rows, unless a rule of the table refuses the text.
func set(t *testing.T, db *sql.DB, table, column, value string) {
	t.Helper()
	where := ""
	if column == "value" && strings.HasSuffix(table, "_param") {
		where = " where type = 'string'"
	}
	switch column { // lists and maps of texts
	case "types":
		value = "[" + jsonText(t, value) + "]"
	case "labels", "payload":
		value = "{" + jsonText(t, value) + ":" + jsonText(t, value) + "}"
	}
	_, err := db.ExecContext(t.Context(), fmt.Sprintf("update %s set %s = $1%s", table, column, where), value) //nolint:gosec // of this test
	if err != nil {
		t.Logf("%s.%s refuses %.30q: %v", table, column, value, err)
	}
}

// database is the history of the scene, as an administrator sees it.
func (s *scene) database() *sql.DB {
	s.t.Helper()
	driver, name := "pgx", s.url
	if file, is := strings.CutPrefix(s.url, "sqlite:"); is {
		driver, name = "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, name)
	require.NoError(s.t, err)
	require.NoError(s.t, db.PingContext(context.Background()))
	s.t.Cleanup(func() { require.NoError(s.t, db.Close()) })
	return db
}
