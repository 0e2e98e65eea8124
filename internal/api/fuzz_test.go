package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type odd struct {
	*scene
	handler http.Handler
	db      tx.Database
}

func (s *scene) odd() *odd {
	s.t.Helper()
	s.release()
	config, _ := s.config()
	handler, err := api.New(config)
	require.NoError(s.t, err)
	db, err := s.provider.Database(tx.Default)
	require.NoError(s.t, err)
	return &odd{s, handler, db}
}

type request struct{ method, path, query, body, contentType, authorization, key string }

type wanted interface {
	Helper()
	Fatalf(format string, args ...any)
}

// send answers a request. It fails on a failure of the server, and on a success of a changing
// operation without an operator's token.
func (o *odd) send(t wanted, q request) {
	t.Helper()
	r := &http.Request{
		Method: q.method, URL: &url.URL{Path: q.path, RawQuery: q.query}, Host: "localhost", RemoteAddr: "127.0.0.1:1", Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(q.body)), ContentLength: int64(len(q.body)),
	}
	for name, value := range map[string]string{"Content-Type": q.contentType, "Authorization": q.authorization, keyHeader: q.key} {
		if value != "" {
			r.Header[name] = []string{value}
		}
	}
	before := ""
	isOperator := q.authorization == "Bearer "+operatorToken || q.authorization == basic("anna", operatorToken)
	if !isOperator {
		before = o.everything(t)
	}
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	text := w.Body.String()
	switch {
	case w.Code >= 500:
		t.Fatalf("%d %s\n%+v\n%s", w.Code, text, q, o.log)
	case w.Code >= 400:
		var p api.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil && q.method != http.MethodHead || p.Detail == "" || p.Status != w.Code {
			t.Fatalf("no problem: %d %s\n%+v", w.Code, text, q)
		}
	}
	if after := ""; !isOperator {
		if after = o.everything(t); after != before {
			t.Fatalf("it changed without a token: %+v\n%s\n%s", q, before, after)
		}
	}
}

func (o *odd) everything(t wanted) string {
	var all strings.Builder
	for _, table := range []string{"job_instance", "client_request", "task_group", "task", "task_audit", "setting", "job_definition"} {
		rows, err := o.db.Conn().QueryContext(context.Background(), "select * from surfin_"+table+" order by 1, 2")
		if err != nil {
			t.Fatalf("%v", err)
		}
		columns, err := rows.Columns()
		for err == nil && rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			err = rows.Scan(values...)
			for _, v := range values {
				fmt.Fprint(&all, *v.(*any), "|")
			}
		}
		if err != nil || rows.Err() != nil || rows.Close() != nil {
			t.Fatalf("%v %v", err, rows.Err())
		}
	}
	var stops int64
	row := o.db.Conn().QueryRowContext(context.Background(), "select count(*) from surfin_audit where act in ('request stop', 'abandon', 'recover', 'launch')")
	if err := row.Scan(&stops); err != nil {
		t.Fatalf("%v", err)
	}
	return fmt.Sprint(all.String(), stops)
}

func oddities() []string {
	return []string{
		"", "0", "1", "2", "-1", "9223372036854775807", "9223372036854775808", "1e9", "x", "true", "null", "load", "broken", "nightly", "../load.yaml",
		"/etc/passwd", "%", "%00", "\x00", "\xff\xfe", "a;b", "ü€😀", "' or 1=1 --", "FAILED,COMPLETED", "2026-11-22", "2026-11-22T00:00:00Z",
		"9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", strings.Repeat("a", 3000), "{}", "[]", "\r\nX: y", "a\u202eb",
	}
}

func values() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(oddities()), rapid.String(), rapid.StringN(0, 20, -1))
}

func bodies() *rapid.Generator[string] {
	names := rapid.OneOf(rapid.SampledFrom([]string{"params", "again", "next", "from_start", "accept_changes", "sample", "step", "edited", "file", "reason", "type", "tasks", "payload", "title", "value"}), rapid.String())
	leaf := rapid.OneOf(
		rapid.Map(values(), func(s string) any { return s }), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.Int64(), func(i int64) any { return i }), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil),
	)
	params := rapid.MapOf(rapid.OneOf(rapid.SampledFrom([]string{"day", "factor", "input", "big", "text", "exact", "yes", "n"}), rapid.SampledFrom([]string{"big", "text", "n"}), rapid.String()), leaf)
	object := rapid.MapOf(names, rapid.OneOf(leaf, rapid.Map(params, func(m map[string]any) any { return m }), rapid.Just[any]([]any{1, nil})))
	run := rapid.Map(params, func(m map[string]any) string { return marshal(map[string]any{"params": m}) })
	return rapid.OneOf(run, rapid.Map(object, func(m map[string]any) string { return marshal(m) }), values(),
		rapid.SampledFrom([]string{"", "", "{}", `{"params":{"big":1}}`, `{"again":true}`, "{", `{"params":{"text":"\u0000"}}`, `{"params":{"text":"\ud800"}}`, `{"params":{"big":1,"big":2}}`, "{} {}", `{"params":{"exact":1e999}}`,
			strings.Repeat(`{"params":`, 20000), strings.Repeat("[", 200000)}))
}

func marshal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func TestRandomRequestsAreAnsweredOrRefused(t *testing.T) {
	t.Parallel()
	all, err := operations()
	require.NoError(t, err)
	testdb.Each(t, func(t *testing.T, url string) {
		o := newScene(t, url).odd()
		rapid.Check(t, func(t *rapid.T) { o.send(t, drawRequest(t, all)) })
		require.Empty(t, o.log.String())
	})
}

func edges() []string {
	return []string{"0", "-1", "2147483648", "9223372036854775807", "9223372036854775808", "1e9", "", "\x00"}
}

func TestEveryParameterAtItsEdges(t *testing.T) {
	t.Parallel()
	all, err := operations()
	require.NoError(t, err)
	testdb.Each(t, func(t *testing.T, address string) {
		o := newScene(t, address).odd()
		for _, d := range all {
			for _, edge := range edges() {
				q := request{method: d.method, path: d.path, authorization: "Bearer " + operatorToken, contentType: "application/json"}
				if d.method != http.MethodGet {
					q.body = "{}"
				}
				q.path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllLiteralString(d.path, edge)
				if q.path != d.path {
					o.send(t, q)
				}
				q.path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllLiteralString(d.path, "1")
				for _, name := range d.parameters {
					q.query = name + "=" + url.QueryEscape(edge)
					o.send(t, q)
				}
			}
		}
		require.Empty(t, o.log.String())
	})
}

func mostly[T any](t *rapid.T, name string, usual T, odd ...T) T {
	if rapid.IntRange(0, 4).Draw(t, name+" is usual") > 0 {
		return usual
	}
	return rapid.SampledFrom(odd).Draw(t, name)
}

func drawRequest(t *rapid.T, all []described) request {
	d := rapid.SampledFrom(all).Draw(t, "operation")
	q := request{
		method: mostly(t, "method", d.method, "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "get", ""),
		authorization: mostly(t, "authorization", "Bearer "+operatorToken, "Bearer "+viewerToken, "", "Bearer x", basic("wall", viewerToken),
			basic("anna", operatorToken), "Basic !", "\x00"),
		contentType: mostly(t, "type", "application/json", "", "text/plain", "application/json; charset=x", "\x00", "multipart/form-data"),
		key:         mostly(t, "key", "", "k", "l", values().Draw(t, "a key")),
		path:        mostly(t, "path", d.path, "/", "/v1", "/openapi.json", "/v1/../v1/jobs", "//v1//jobs", "/v1/jobs/", d.path+"/"),
	}
	for strings.Contains(q.path, "{") {
		before, rest, _ := strings.Cut(q.path, "{")
		name, after, _ := strings.Cut(rest, "}")
		known := rapid.SampledFrom([]string{"1", "2", "3", "99"})
		if name == "job" {
			known = rapid.SampledFrom([]string{"load", "broken", "hold", "nightly", "lod"})
		}
		value := rapid.OneOf(known, known, values()).Draw(t, name)
		q.path = before + strings.NewReplacer("{", "(", "}", ")").Replace(value) + after
	}
	if q.method == "POST" || rapid.Bool().Draw(t, "has a body") {
		q.body = bodies().Draw(t, "body")
	}
	var query []string
	for range rapid.IntRange(0, 3).Draw(t, "parameters") {
		name, value := mostly(t, "name", rapid.SampledFrom(append(d.parameters, "limit")).Draw(t, "its parameter"), "colour", ""), values().Draw(t, "value")
		if rapid.Bool().Draw(t, "escaped") {
			value = url.QueryEscape(value)
		}
		query = append(query, name+"="+value)
	}
	q.query = strings.Join(query, "&")
	return q
}

func FuzzRequest(f *testing.F) {
	all, err := operations()
	require.NoError(f, err)
	for _, d := range all {
		path := strings.NewReplacer("{job}", "broken", "{execution}", "1", "{skip}", "1").Replace(d.path)
		f.Add(d.method, path, "", `{"params":{"big":1}}`, "application/json", "Bearer "+operatorToken, "")
		f.Add(d.method, path, "limit=1", "", "", "", "k")
		f.Add(d.method, path, "limit=x", "{", "text/plain", "Bearer "+viewerToken, "\x00")
	}
	for _, value := range oddities() {
		f.Add("POST", "/v1/jobs/load/run", "", marshal(map[string]any{"params": map[string]string{"input": value, "day": value}}), "application/json", "Bearer "+operatorToken, value)
		f.Add("GET", "/v1/executions", "job="+value+"&statuses="+value+"&exit="+value, "", "", "Bearer "+operatorToken, "")
		f.Add("GET", "/v1/executions/"+value+"/skips", "step="+url.QueryEscape(value), "", "", "Bearer "+operatorToken, "")
	}
	o := newScene(f, testdb.SQLite(f)).odd()
	f.Fuzz(func(t *testing.T, method, path, query, body, contentType, authorization, key string) {
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		o.send(t, request{method, path, query, body, contentType, authorization, key})
	})
}
