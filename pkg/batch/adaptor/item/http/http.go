// Package httpitem is the reader `http`: it reads the items of a JSON API, with one page in memory.
//
// It imports core with its folders and internal/httpcall.
package httpitem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/httpcall"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// config configures the reader.
type config struct {
	URL     string            `key:"url" main:"true" required:"true" doc:"The address of the first page."`
	Item    item.Type         `key:"item" required:"true" doc:"The type of the items: fields are matched by key or path, other keys are ignored, a missing key is null."`
	Items   string            `key:"items" doc:"The path of the array in each response, such as data.results; without it the response is the array."`
	Query   map[string]string `key:"query" doc:"Query parameters of the URL; they are encoded."`
	Headers map[string]string `key:"headers" doc:"Headers of the requests."`
	Page    *paging           `key:"page" doc:"How to request the next page; without it there is only one."`
	Rate    string            `key:"rate" doc:"The highest rate of requests, such as 5/s, 100/m or 1000/h."`
	Timeout time.Duration     `key:"timeout" default:"30s" doc:"How long a request and its response may take."`
	MaxPage registry.Size     `key:"max_page" default:"16MB" doc:"The longest response; a longer one is an error. A page is kept in memory."`
}

// paging configures how to request the next page.
type paging struct {
	Cursor string `key:"cursor" doc:"The path of the cursor of the next page in a response. If it is missing, null or empty, the page is the last one."`
	Next   string `key:"next" doc:"The path of the next page's URL in a response; it must be on the same host."`
	Link   bool   `key:"link" default:"false" doc:"The next page's URL is in the header Link, with rel=next."`
	Offset bool   `key:"offset" default:"false" doc:"The parameter is the number of items before the page; the first empty page ends the data."`
	Number bool   `key:"number" default:"false" doc:"The parameter is the number of the page; the first empty page ends the data."`
	First  int64  `key:"first" default:"1" doc:"The number of the first page."`
	Param  string `key:"param" doc:"The query parameter for the cursor, offset or number."`
}

const defaultMaxPage = 16 << 20

// Validate checks the request.
func (c *config) Validate() error {
	var errs []error
	mend := func(key string, err error, hint string) {
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: key, Err: err, Hint: hint})
		}
	}
	bad := func(key string, err error) { mend(key, err, "") }
	mend("url", httpcall.CheckURL(c.URL), "write https://HOST/PATH")
	for name, value := range c.Headers {
		bad("headers."+name, httpcall.CheckHeader(name, value))
	}
	for key, path := range map[string]string{"items": c.Items, "page.cursor": c.page().Cursor, "page.next": c.page().Next} {
		if path != "" {
			bad(key, jsontext.CheckName(path))
		}
	}
	if c.Timeout < 0 {
		bad("timeout", errors.New("it must not be negative"))
	}
	if c.MaxPage < 0 {
		bad("max_page", errors.New("it is negative"))
	}
	_, err := everyOf(c.Rate)
	mend("rate", err, "write a number and a unit of time: 5/s")
	hint, err := c.page().check(c.Page != nil)
	mend("page", err, hint)
	return errors.Join(errs...)
}

func (c *config) page() *paging {
	if c.Page == nil {
		return &paging{}
	}
	return c.Page
}

func (p *paging) check(given bool) (hint string, err error) {
	ways, named := 0, p.Cursor != "" || p.Offset || p.Number
	for _, is := range []bool{p.Cursor != "", p.Next != "", p.Link, p.Offset, p.Number} {
		if is {
			ways++
		}
	}
	switch {
	case given && ways != 1:
		return "choose one: {cursor: PATH, param: NAME}, {next: PATH}, {link: true}, {offset: true, param: NAME} or {number: true, param: NAME}",
			errors.New("set exactly one of cursor, next, link, offset and number")
	case named && p.Param == "":
		return "write param: NAME, such as param: cursor", errors.New("param is missing: the query parameter that the server reads")
	case !named && p.Param != "":
		return "omit param", errors.New("param is for cursor, offset and number: a URL needs none")
	}
	return "", nil
}

func everyOf(rate string) (time.Duration, error) {
	if rate == "" {
		return 0, nil
	}
	count, unit, _ := strings.Cut(rate, "/")
	units := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || units[unit] == 0 {
		return 0, fmt.Errorf("%q is not a rate (such as 5/s, 100/m or 1000/h)", rate)
	}
	return units[unit] / time.Duration(n), nil
}

// Components describes the reader.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "http", Config: reflect.TypeFor[config](),
		Summary: "Reads the items of a JSON API, page by page.",
		Doc: `Each response has an array of items, and says how to request the next page. A restart requests
the current page again and continues after the last committed item: a response with different items before
it is refused (rule C15i). The position holds the cursor, or the URL of the page with its query.

A failed request is an error of the class ` + "`http`" + ` or ` + "`http(429)`" + `, and retryable if that may help: no connection, no
response in time, 5xx, 429, 408. With ` + "`retry`" + ` in the chunk it is sent again; the next request waits as long as
` + "`Retry-After`" + ` says, at most a minute. No message contains the URL's user and query, and headers are
never sent to another host. An element that does not fit is an invalid item, identified by its number among all.`,
		Example: `job: fetch
flow:
- step: fetch
  chunk:
    reader:
      http:
        url: https://api.example.org/v1/events
        query: {limit: "200"}
        items: data
        page: {cursor: next, param: cursor}
        rate: 5/s
        item: {id: string, mag: float null, place: string null}
    writer: {table: {name: event, mode: upsert, key: [id], create: true}}
    retry: {limit: 5, errors: [transient, http(429)]}`,
		Types: func(cfg any, _ item.Type) (item.Type, error) {
			c := cfg.(*config)
			if c.Item == nil || c.Item.Schema() != nil && c.Item.Schema().IsOpen() {
				return nil, &registry.ConfigError{
					Key: "item", Err: errors.New("the item type is missing: JSON has no header that names the fields"),
					Hint: "name the fields: item: {id: string, at: timestamp}",
				}
			}
			if err := item.CheckDocumentKeys(c.Item); err != nil {
				return nil, &registry.ConfigError{Key: "item", Err: err}
			}
			return c.Item, nil
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newReader(http.DefaultClient, *cfg.(*config), b.Out)
		},
	}}
}
