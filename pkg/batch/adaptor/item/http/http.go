// Package httpitem is the reader `http`: it reads the items of a JSON API, page by page. It
// keeps one page in memory.
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

// Config configures the reader.
type Config struct {
	URL     string            `key:"url" main:"true" required:"true" doc:"The address of the first page."`
	Item    item.Type         `key:"item" required:"true" doc:"The type of the items: fields are found by key or path, other keys are ignored, an absent key is a null."`
	Items   string            `key:"items" doc:"The path of the array in each answer, such as data.results; without it the answer is the array."`
	Query   map[string]string `key:"query" doc:"Parameters of the address; they are encoded."`
	Headers map[string]string `key:"headers" doc:"Headers of the requests."`
	Page    *Page             `key:"page" doc:"How the next page is asked for; without it there is one."`
	Rate    string            `key:"rate" doc:"How many requests there may be in a time, such as 5/s, 100/m or 1000/h."`
	Timeout time.Duration     `key:"timeout" default:"30s" doc:"How long a request and its answer may take."`
	MaxPage registry.Size     `key:"max_page" default:"16MB" doc:"The longest answer; a longer one is an error. A page is kept in memory."`
}

// Page is how the next page is asked for.
type Page struct {
	Cursor string `key:"cursor" doc:"The path of what names the next page in an answer. Without it there, or with null or an empty text, the page is the last one."`
	Next   string `key:"next" doc:"The path of the address of the next page in an answer, of the same host."`
	Link   bool   `key:"link" default:"false" doc:"The address of the next page is in the header Link, with rel=next."`
	Offset bool   `key:"offset" default:"false" doc:"The parameter is the number of items before the page; an empty page is the end."`
	Number bool   `key:"number" default:"false" doc:"The parameter is the number of the page; an empty page is the end."`
	First  int64  `key:"first" default:"1" doc:"The number of the first page."`
	Param  string `key:"param" doc:"The parameter of the address that has the cursor, offset or number."`
}

const defaultMaxPage = 16 << 20

// Validate checks the request.
func (c *Config) Validate() error {
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
		bad("timeout", errors.New("a time is less than 0"))
	}
	if c.MaxPage < 0 {
		bad("max_page", errors.New("it is negative"))
	}
	_, err := everyOf(c.Rate)
	mend("rate", err, "write how many, and in which time: 5/s")
	hint, err := c.page().check(c.Page != nil)
	mend("page", err, hint)
	return errors.Join(errs...)
}

func (c *Config) page() *Page {
	if c.Page == nil {
		return &Page{}
	}
	return c.Page
}

// check returns the mistake and a hint.
func (p *Page) check(given bool) (hint string, err error) {
	ways, named := 0, p.Cursor != "" || p.Offset || p.Number
	for _, is := range []bool{p.Cursor != "", p.Next != "", p.Link, p.Offset, p.Number} {
		if is {
			ways++
		}
	}
	switch {
	case given && ways != 1:
		return "name one way: {cursor: PATH, param: NAME}, {next: PATH}, {link: true}, {offset: true, param: NAME} or {number: true, param: NAME}",
			errors.New("it takes one of cursor, next, link, offset and number")
	case named && p.Param == "":
		return "write param: NAME, such as param: cursor", errors.New("param is missing: the parameter of the address that the server reads")
	case !named && p.Param != "":
		return "leave param out", errors.New("param is for cursor, offset and number: an address needs none")
	}
	return "", nil
}

// everyOf is the time between two requests at a rate.
func everyOf(rate string) (time.Duration, error) {
	if rate == "" {
		return 0, nil
	}
	count, unit, _ := strings.Cut(rate, "/")
	units := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || units[unit] == 0 {
		return 0, fmt.Errorf("%q is no rate (such as 5/s, 100/m or 1000/h)", rate)
	}
	return units[unit] / time.Duration(n), nil
}

// Components describes the reader.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "http", Config: reflect.TypeFor[Config](),
		Summary: "Reads the items of a JSON API, page by page.",
		Doc: `Each answer has an array of items, and says how the next page is asked for. A restart asks for
the page in hand again and goes on behind the last item that was committed: an answer that has other items before
it is refused (rule C15i). The position has the cursor, or the address of the page with its query.

What does not succeed is of the class ` + "`http`" + ` or ` + "`http(429)`" + `, and retryable where it may help: no connection, no
answer in time, 5xx, 429, 408. With ` + "`retry`" + ` in the chunk it is asked again; the next request waits as long as
` + "`Retry-After`" + ` says, at most a minute. User and query of the address are in no message, and headers are
never sent to another host. An element that does not fit is an invalid item, named by its number among all.`,
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
			c := cfg.(*Config)
			if c.Item == nil || c.Item.Schema() != nil && c.Item.Schema().IsOpen() {
				return nil, &registry.ConfigError{
					Key: "item", Err: errors.New("the type of the items is missing: JSON has no header that would name the fields"),
					Hint: "name the fields: item: {id: string, at: timestamp}",
				}
			}
			if err := item.CheckDocumentKeys(c.Item); err != nil {
				return nil, &registry.ConfigError{Key: "item", Err: err}
			}
			return c.Item, nil
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return NewReader(http.DefaultClient, *cfg.(*Config), b.Out)
		},
	}}
}
