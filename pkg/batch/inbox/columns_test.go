package inbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

type door int

const (
	shut door = iota
	open
	walledUp
)

func TestAnInboxTakesTheColumnsOfTheTable(t *testing.T) {
	each(t, inbox.Options{}, func(s *scene) {
		s.exec("CREATE TABLE doors (nr bigint PRIMARY KEY, status int NOT NULL, rev bigint NOT NULL DEFAULT 0)")
		s.exec("INSERT INTO doors (nr, status) VALUES (1, 0)")
		m, err := core.NewMachine("door",
			core.Move[door]{Name: "open", From: []door{shut}, To: open, Intent: core.IntentBegin},
			core.Move[door]{Name: "shut", From: []door{open}, To: shut, Intent: core.IntentBegin},
			core.Move[door]{Name: "wall_up", From: []door{open}, To: walledUp, Intent: core.IntentEnd})
		require.NoError(s, err)
		doors := guard.NewTable(s.db, "doors", m, nil, guard.WithColumns(guard.Columns{ID: "nr", State: "status", Version: "rev"}))
		box := inbox.New(doors, repository.DefaultPrefix, inbox.Options{})
		for _, move := range []string{"wall_up", "open", "shut"} {
			answer, err := box.Receive(s.Context(), inbox.Event{Topic: "doors", Subject: 1, DedupeKey: move, Payload: []byte(`"` + move + `"`)})
			require.NoError(s, err)
			require.Equal(s, core.Applied, answer)
		}
		done, err := box.Process(s.Context(), "doors", func(ctx context.Context, e inbox.Event) (guard.Result[door], error) {
			var move string
			require.NoError(s, e.Decode(&move))
			return doors.Move(ctx, guard.Request{ID: e.Subject, Move: move})
		})
		require.NoError(s, err)
		// wall_up is early; open is applied; shut is applied; wall_up is offered again, and is early again.
		require.Equal(s, inbox.Done{Applied: 2, Rejected: 2}, done)
		require.Equal(s, "0", s.text("SELECT status FROM doors"))

		keyed := inbox.New(guard.NewTable(s.db, "doors", m, nil, guard.WithColumns(guard.Columns{Key: "nr", State: "status"})), repository.DefaultPrefix, inbox.Options{})
		_, err = keyed.Receive(s.Context(), inbox.Event{Topic: "doors", Subject: 1, DedupeKey: "x"})
		require.ErrorContains(s, err, "the table needs guard.Columns.ID (an integer) and Version")
		_, err = keyed.Process(s.Context(), "doors", nil)
		require.ErrorContains(s, err, "the table needs guard.Columns.ID (an integer) and Version")
	})
}
