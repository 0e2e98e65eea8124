package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule I5.
func TestDeadEventsAreListedAndOfferedOverHTTP(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		s := scene.serve()
		s.call("GET", "/v1/events", nil).is(200).says(`"events":[]`)
		db, err := scene.provider.Database(tx.Default)
		require.NoError(t, err)
		now := gormtx.Now(db.Dialect())
		_, err = db.Conn().ExecContext(t.Context(), `INSERT INTO surfin_event (topic, subject, dedupe_key, payload, offers, offer_after, last_error, created_at, dead_at)
			VALUES ('payments', 7, 'k', '{"paid": 1}', 10, 0, 'no such order', `+now+", "+now+")")
		require.NoError(t, err)

		s.as(viewerToken, "GET", "/v1/events?topic=payments&limit=1", nil).is(200).says(`"id":1`, `"paid":`, `"last_error":"no such order"`)
		s.call("GET", "/v1/events?topic=other", nil).is(200).says(`"events":[]`)
		s.as(viewerToken, "POST", "/v1/events/1/offer", nil).is(403)
		s.call("POST", "/v1/events/1/offer", `{"reason": "a\u0000b"}`).is(422)
		s.call("POST", "/v1/events/1/offer", `{"reason": "it is there"}`).is(200).says(`"applied":true`)
		s.call("POST", "/v1/events/1/offer", nil).is(200).says(`"applied":false`)
		s.call("POST", "/v1/events/99/offer", nil).is(404).says(`"reason":"not_found"`)
		var actor, detail string
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT actor, detail FROM surfin_task_audit WHERE act = 'offer'").Scan(&actor, &detail))
		require.Equal(t, []string{"API client anna", "event 1: it is there"}, []string{actor, detail})
	})
}
