package api_test

import (
	"fmt"
	"testing"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestATaskWithAPlacementSaysWhatItWaitsForOverHTTP(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve()
	post := func(on string) *reply {
		return s.call("POST", "/v1/tasks", fmt.Sprintf(`{"type": "http_request", "on": %s}`, on))
	}
	post(`{"disk": "eu1"}`).is(200).says("no live worker with the labels disk=eu1")
	post(`"big"`).is(200).says("no live worker of the name big")
	for _, wrong := range []string{`{}`, `5`, `["eu1"]`, `{"disk": 1}`, `{"my disk": "eu1"}`} {
		post(wrong).is(422)
	}
	s.call("GET", "/v1/tasks", nil).is(200).says(`"on":{"disk":"eu1"}`, `"on":"big"`, `"waits_for":"no live worker of the name big`)
	s.call("GET", "/v1/tasks/1", nil).is(200).says(`"waits_for":"no live worker with the labels disk=eu1`)
}
