package httpitem

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func event(t testing.TB) item.Type {
	t.Helper()
	schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "place", Kind: row.String, From: "at.place", Nullable: true})
	require.NoError(t, err)
	return item.RowOf("event", schema)
}

type api struct {
	*httptest.Server
	requests atomic.Int64
	broken   atomic.Pointer[func(w http.ResponseWriter) bool]
	first    atomic.Int64 // added to each id
}

func newAPI(t testing.TB) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(a.answer))
	t.Cleanup(a.Close)
	return a
}

func (a *api) answer(w http.ResponseWriter, r *http.Request) {
	a.requests.Add(1)
	if broken := a.broken.Load(); broken != nil && (*broken)(w) {
		return
	}
	q := r.URL.Query()
	page := 0
	switch {
	case q.Has("cursor"):
		page = int(q.Get("cursor")[0] - 'a')
	case q.Has("page"):
		page, _ = strconv.Atoi(q.Get("page"))
		page--
	case q.Has("offset"):
		offset, _ := strconv.Atoi(q.Get("offset"))
		page = (offset + 2) / 3
	}
	items := []string{}
	for id := page*3 + 1; id <= min(page*3+3, 7); id++ {
		text := fmt.Sprintf(`{"id": %d, "at": {"place": "p%d"}}`, int64(id)+a.first.Load(), id)
		if id == 4 {
			text = `{"id": "four"}`
		}
		items = append(items, text)
	}
	cursor, next := "null", "null"
	if page < 2 {
		cursor, next = fmt.Sprintf("%q", string(rune('a'+page+1))), fmt.Sprintf(`"/events?key=secret&page=%d"`, page+2)
		w.Header().Set("Link", fmt.Sprintf(`</events?page=1>; rel="first", </events?page=%d>; rel="next"`, page+2))
	}
	list := "[" + strings.Join(items, ",") + "]"
	if q.Get("bare") != "" {
		say(w, list)
		return
	}
	say(w, fmt.Sprintf(`{"body": {"data": %s, "cursor": %s, "next": %s}}`, list, cursor, next))
}

func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text) //nolint:errcheck // of the test: a reader that has enough is gone
}

func (a *api) reader(t testing.TB, page *paging, query map[string]string) item.Reader {
	t.Helper()
	cfg := config{URL: a.URL + "/events?key=secret", Query: query, Items: "body.data", Page: page, Headers: map[string]string{"Authorization": "Bearer x"}}
	if query["bare"] != "" {
		cfg.Items = ""
	}
	r, err := newReader(http.DefaultClient, cfg, event(t))
	require.NoError(t, err)
	return r
}

func pages() map[string]*paging {
	return map[string]*paging{
		"cursor": {Cursor: "body.cursor", Param: "cursor"}, "next": {Next: "body.next"}, "link": {Link: true},
		"offset": {Offset: true, Param: "offset"}, "number": {Number: true, First: 1, Param: "page"},
	}
}

// Rule C15i.
func TestEachWayOfPagesKeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, page := range pages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			query := map[string]string{"limit": "3"}
			if name == "link" || name == "number" {
				query["bare"] = "1"
			}
			if name == "link" {
				delete(query, "bare") // the addresses of Link do not have it
			}
			itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader { return a.reader(t, page, query) }})
			all, errs, end := readAll(t, a.reader(t, page, query))
			require.ErrorIs(t, end, io.EOF)
			require.Equal(t, []string{"{1, p1}", "{2, p2}", "{3, p3}", "{5, p5}", "{6, p6}", "{7, p7}"}, all)
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], "/events, element 4: field id")
			require.NotContains(t, errs[0].Error(), "secret")
		})
	}
}

func readAll(t testing.TB, r item.Reader) (all []string, errs []error, end error) {
	t.Helper()
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	for {
		items := r.NewItems(1)
		err := r.Fill(t.Context(), items, 1)
		switch {
		case err == nil:
			values := items.At(0).(item.Row).Values()
			all = append(all, fmt.Sprintf("{%s, %s}", values[0], values[1]))
		case item.IsConsumed(err):
			errs = append(errs, err)
		default:
			return all, errs, err
		}
	}
}

func TestAPageThatChangedIsRefusedAtARestart(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.reader(t, pages()["cursor"], nil)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	require.NoError(t, r.Fill(t.Context(), r.NewItems(1), 1))
	at, err := r.Component().(item.Positioner).Position()
	require.NoError(t, err)
	a.first.Store(100)
	again := a.reader(t, pages()["cursor"], nil)
	require.NoError(t, again.Component().(item.Opener).Open(t.Context(), at))
	err = again.Fill(t.Context(), again.NewItems(1), 1)
	require.ErrorContains(t, err, "its first 1 items differ from the items that were read before")
	require.False(t, exception.IsRetryable(err))
}

func TestAFailedRequestConsumesNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	fails := func(answer func(w http.ResponseWriter)) {
		var once atomic.Bool
		broken := func(w http.ResponseWriter) bool {
			if once.Swap(true) {
				return false
			}
			answer(w)
			return true
		}
		a.broken.Store(&broken)
	}
	for problem, answer := range map[string]func(w http.ResponseWriter){
		"429 Too Many Requests": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"503 Service Unavailable: sorry": func(w http.ResponseWriter) { http.Error(w, "sorry", http.StatusServiceUnavailable) },
		"404 Not Found":                  func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"unexpected EOF": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			say(w, `{"body": {"data": [{"id": 1}`)
		},
		"the response is not JSON":                 func(w http.ResponseWriter) { say(w, "<html>") },
		"the response has no array at body.data":   func(w http.ResponseWriter) { say(w, `{"body": {"data": {}}}`) },
		"names itself as the next page":            func(w http.ResponseWriter) { say(w, `{"body": {"data": [], "next": "/events?key=secret"}}`) },
		"the next page is at https://evil.invalid": func(w http.ResponseWriter) { say(w, `{"body": {"data": [], "next": "https://evil.invalid/x"}}`) },
	} {
		fails(answer)
		r := a.reader(t, pages()["next"], nil)
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
		items := r.NewItems(1)
		began := time.Now()
		err := r.Fill(t.Context(), items, 1)
		require.ErrorContains(t, err, problem)
		require.NotContains(t, err.Error(), "secret")
		var status interface{ StatusCode() int }
		require.Equal(t, strings.HasPrefix(problem, "4") || strings.HasPrefix(problem, "5"), errors.As(err, &status))
		require.Equal(t, strings.HasPrefix(problem, "429") || strings.HasPrefix(problem, "503") || problem == "unexpected EOF", exception.IsRetryable(err), problem)
		require.NoError(t, r.Fill(t.Context(), items, 1), "the same item, asked for again: %s", problem)
		if strings.HasPrefix(problem, "429") {
			require.GreaterOrEqual(t, time.Since(began), 900*time.Millisecond, "Retry-After")
		}
	}
}

func TestTheConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(c *config){
		"url: it must begin with http":                           func(c *config) { c.URL = "ftp://x" },
		"page: set exactly one of cursor":                        func(c *config) { c.Page = &paging{} },
		"page: param is missing":                                 func(c *config) { c.Page = &paging{Offset: true} },
		"page: param is for cursor":                              func(c *config) { c.Page = &paging{Link: true, Param: "x"} },
		`rate: "5" is not a rate (such as 5/s, 100/m or 1000/h)`: func(c *config) { c.Rate = "5" },
		"headers.a b: \"a b\" is not a header name":              func(c *config) { c.Headers = map[string]string{"a b": "x"} },
		"max_page: it is negative":                               func(c *config) { c.MaxPage = -1 },
		"timeout: it must not be negative":                       func(c *config) { c.Timeout = -1 },
	} {
		cfg := config{URL: "https://api.example.org"}
		change(&cfg)
		require.ErrorContains(t, cfg.Validate(), want)
	}
}
