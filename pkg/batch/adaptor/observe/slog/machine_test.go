package slog_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	events "github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAMoveOfAnApplicationsRowIsLoggedWithKeyStateTriggerAndAnswer(t *testing.T) {
	t.Parallel()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: testdb.SQLite(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	for _, statement := range []string{"CREATE TABLE orders (order_id text PRIMARY KEY, status text NOT NULL)", "INSERT INTO orders VALUES ('4f1c', 'Pending')"} {
		_, err = db.Conn().ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	machine, err := core.NewMachine("order",
		core.Move[string]{Name: "pay", From: []string{"Pending"}, To: "Paid", Intent: core.IntentBegin},
		core.Move[string]{Name: "send", From: []string{"Paid"}, To: "Sent", Intent: core.IntentEnd},
		core.Move[string]{Name: "cancel", From: []string{"Pending"}, To: "Cancelled", Intent: core.IntentEnd})
	require.NoError(t, err)
	var text bytes.Buffer
	observer := events.New(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	orders := guard.NewTable(db, "orders", machine, observer, guard.WithColumns(guard.Columns{Key: "order_id", State: "status"}))
	for _, c := range []struct{ move, current, to, level, result string }{
		{"send", "Pending", "Sent", "INFO", "rejected"}, // too early
		{"pay", "Pending", "Paid", "DEBUG", "applied"},
		{"pay", "Paid", "Paid", "INFO", "duplicate"},
		{"cancel", "Paid", "Cancelled", "ERROR", "rejected"},
		{"send", "Paid", "Sent", "DEBUG", "applied"},
		{"cancel", "Sent", "Cancelled", "INFO", "duplicate"},
	} {
		text.Reset()
		_, err := orders.Move(t.Context(), guard.Request{Key: "4f1c", Move: c.move, Trigger: "event " + c.move})
		require.Equal(t, c.result == "rejected", err != nil, c)
		record := lines(t, text.Bytes())[0]
		delete(record, "time")
		want := map[string]any{
			"level": c.level, "msg": "transition", "event": "transition", "machine": "order", "key": "4f1c",
			"current": c.current, "to": c.to, "trigger": "event " + c.move, "result": c.result,
		}
		if c.level == "INFO" && c.result == "rejected" {
			want["early"] = true
		}
		require.Equal(t, want, map[string]any(record), c)
	}
}
