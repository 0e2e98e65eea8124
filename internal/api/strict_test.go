package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// encoding/json would change it silently, so that two requests became one.
func TestABodyThatMayMeanTwoThingsIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		for body, says := range map[string]string{
			"{\"params\": {\"text\": \"a\xffb\"}}":                          "UTF-8",
			`{"params": {"text": "\ud800"}}`:                                `lone surrogate \\ud800`,
			`{"params": {"text": "\udc00x"}}`:                               `lone surrogate \\udc00`,
			`{"params": {"text": "a"}, "params": {"text": "b"}}`:            `the key \"params\" is there twice`,
			`{"params": {"text": "a", "text": "b"}}`:                        `the key \"text\" is there twice`,
			`{"params": {"text": "a", "t\u0065xt": "b"}}`:                   `the key \"text\" is there twice`,
			`{"params": {"text": "a"}} {}`:                                  "body",
			`{"params": {"\ud800": "a"}}`:                                   "lone surrogate",
			`{"again": false, "again": true, "params": {"text": "a"}}`:      `the key \"again\" is there twice`,
			"{\"params\": {\"text\": \"\xc0\xaf\"}, \"from_start\": false}": "UTF-8",
		} {
			for _, path := range []string{"/v1/jobs/broken/run", "/v1/jobs/broken/plan"} {
				s.call("POST", path, body).is(http.StatusBadRequest).says(says)
			}
		}
		s.call("POST", "/v1/tasks", `{"type": "http_request", "payload": {"a": 1, "a": 2}}`).is(http.StatusBadRequest).says("twice")
		s.call("POST", "/v1/groups", "{\"tasks\": [{\"type\": \"http_request\", \"payload\": \"\xff\"}]}").is(http.StatusBadRequest).says("UTF-8")
		s.call("POST", "/v1/groups", `{"tasks": [{"type": "http_request"}], "budget": {"max_attempts_per_task": 3}}`).is(http.StatusUnprocessableEntity).says("unexpected property: write max_attempts")
		s.call("POST", "/v1/tasks", `{"type": "http_request", "after": ["a"]}`).is(http.StatusUnprocessableEntity).says(`no task of the group has the key`)
		require.Empty(t, s.executions())
		s.call("GET", "/v1/tasks", nil).is(http.StatusOK).says(`"tasks":[]`)
		s.call("POST", "/v1/groups", `{"tasks": [{"type": "http_request", "key": "a"}, {"type": "http_request", "after": ["a"], "dependencies_hint": null}]}`).is(http.StatusOK)
		s.call("GET", "/v1/tasks", nil).is(http.StatusOK).says(`"open_after":[{"id":1,"key":"a","state":"PENDING"}],"open_after_count":1`)
		s.call("GET", "/v1/tasks/2", nil).is(http.StatusOK).says(`"waits_for":"task 1 (\"a\"), which is PENDING"`)
	})
}

func TestTheCaseOfAMediaTypeAndOfTheHostDoesNotMatter(t *testing.T) {
	t.Parallel()
	scene := newScene(t, testdb.SQLite(t))
	s := scene.serve()
	for _, media := range []string{"Application/JSON", "APPLICATION/json; charset=UTF-8", " application/json ;charset=utf-8", "Application/Problem+JSON"} {
		s.call("POST", "/v1/jobs/load/plan", `{"sample": 1}`, "Content-Type", media).is(http.StatusOK)
	}
	s.call("POST", "/v1/jobs/load/plan", `{"sample": 1}`, "Content-Type", "Text/YAML").is(http.StatusUnsupportedMediaType)

	open := scene.serve(func(c *api.Config) { c.Clients = nil })
	for host, status := range map[string]int{"LOCALHOST": 200, "LocalHost:80": 200, "localhost.": 200, "127.0.0.1": 200, "localhost.evil.example": 403, "": 403} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, open.url+"/v1/executions", nil)
		require.NoError(t, err)
		if req.Host = host; host == "" {
			req.Host = "notlocalhost"
		}
		open.send(req).is(status)
	}
}

// PostgreSQL cannot index a text of any length.
func TestTheTextsOfAGroupHaveBounds(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		long := func(n int) string { return strings.Repeat("k", n) }
		group := func(field string, n int) string {
			return `{"` + field + `": "` + long(n) + `", "tasks": [{"type": "http_request", "delay": "1h"}]}`
		}
		for field, most := range map[string]string{"idempotency_key": "300", "title": "1000", "type": "100", "decider": "100"} {
			s.call("POST", "/v1/groups", group(field, 20_000)).is(http.StatusUnprocessableEntity).says(field+": it has 20000 bytes, more than the allowed "+most, `"reason":"invalid"`)
		}
		s.call("POST", "/v1/groups", group("idempotency_key", 300)).is(http.StatusOK)
		s.call("POST", "/v1/groups", group("title", 1000), keyHeader, long(200)).is(http.StatusOK)
		s.call("POST", "/v1/tasks", `{"type": "http_request", "delay": "1h", "idempotency_key": "`+long(201)+`"}`).is(http.StatusUnprocessableEntity)
	})
}

func TestADecimalOverHTTPIsExact(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		scene.write("pay.yaml", "job: pay\nparameters:\n  amount: {type: decimal, required: true}\nflow:\n- {step: one, tasklet: {sql: select 1}}\n")
		s := scene.serve()
		const digits = "12345678901234567890.000000000000000000000000000000000012345"
		for number, shown := range map[string]string{"1.50": "1.5", digits: digits, "-0.10": "-0.1", `"2.50"`: "2.5"} {
			id := s.call("POST", "/v1/jobs/pay/run", `{"params": {"amount": `+number+`}}`).acted(true)
			s.over(id, core.StatusCompleted)
			s.call("GET", "/v1/executions?limit=1", nil).is(http.StatusOK).says(`"amount":` + shown + `}`)
		}
		id := s.call("POST", "/v1/jobs/pay/run", `{"params": {"amount": 1e400}}`).acted(true) // more than a float has
		amount, _ := s.over(id, core.StatusCompleted).Params.Get("amount")
		require.Equal(t, "1"+strings.Repeat("0", 400), amount.Text())
		s.call("POST", "/v1/jobs/pay/run", `{"params": {"amount": 1.5}}`, keyHeader, "k").is(http.StatusConflict).says(`"reason":"complete"`)
		for _, number := range []string{"1.5", "1.50", `"1.5"`, "15e-1"} {
			s.call("POST", "/v1/jobs/pay/run", `{"params": {"amount": `+number+`}}`).is(http.StatusConflict).says(`"reason":"complete"`)
		}
		s.call("POST", "/v1/jobs/pay/run", `{"params": {"amount": 1e1001}}`).is(http.StatusUnprocessableEntity).says(`"location":"body.params.amount"`)
		s.call("POST", "/v1/jobs/load/plan", `{"sample": 1e400}`).is(http.StatusUnprocessableEntity).says("body.sample")
	})
}
