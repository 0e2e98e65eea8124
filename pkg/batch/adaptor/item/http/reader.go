package httpitem

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/httpcall"
	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// a wait that a server requests by Retry-After
const longestWait = time.Minute

// newReader returns a reader of items of the type.
func newReader(client *http.Client, cfg config, itemType item.Type) (item.Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	every, err := everyOf(cfg.Rate)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	cfg.MaxPage = cmp.Or(cfg.MaxPage, defaultMaxPage)
	return itemType.FromDocuments(&reader{client: client, cfg: cfg, every: every})
}

// reader is the item.DocumentReader.
type reader struct {
	client *http.Client
	cfg    config
	every  time.Duration

	at     position
	items  []json.RawMessage // of the current page; nil means not read yet
	next   *string           // nil means the last page
	soon   time.Time
	meta   item.Meta
	last   []byte
	single []byte
	raw    bool
}

// a page, and how many of its items are done
type position struct {
	// paging is a cursor or an address; empty means the first page.
	Page string `json:"page,omitempty"`
	// Before and Pages count the items and pages before the page.
	Before int64 `json:"before"`
	Pages  int64 `json:"pages"`
	// Done counts the finished items of the page, Sum is their hash.
	Done  int64  `json:"done,omitempty"`
	Sum   string `json:"sum,omitempty"`
	Ended bool   `json:"ended,omitempty"`
}

func (r *reader) Meta() item.Meta { return r.meta }

func (r *reader) Open(_ context.Context, at item.Position) error {
	r.at, r.items, r.next, r.raw, r.single = position{}, nil, nil, false, nil
	if at == nil {
		return nil
	}
	if err := json.Unmarshal(at, &r.at); err != nil {
		return fmt.Errorf("http: cannot restart: the stored position is unreadable: %w", err)
	}
	return nil
}

// A writer may change the server's answers.
func (r *reader) IndependentOf(string) bool { return false }

func (r *reader) Position() (item.Position, error) { return json.Marshal(r.at) }

// ReadDocument implements item.DocumentReader.
func (r *reader) ReadDocument(ctx context.Context) ([]byte, error) {
	if r.raw {
		text := r.single
		if r.single = nil; text == nil {
			return nil, io.EOF
		}
		return text, nil
	}
	for {
		if r.at.Ended {
			return nil, io.EOF
		}
		if r.items == nil {
			if err := r.fetch(ctx); err != nil {
				return nil, fmt.Errorf("http: %s, page %d: %w", httpcall.Shown(r.address()), r.at.Pages+1, err)
			}
		}
		if r.at.Done < int64(len(r.items)) {
			return r.take(), nil
		}
		r.turn()
	}
}

func (r *reader) take() []byte {
	r.last = r.items[r.at.Done]
	r.at.Done++
	r.at.Sum = sumOf(r.at.Sum, r.last)
	r.meta = item.Meta{Path: httpcall.Shown(r.address()), Index: r.at.Before + r.at.Done}
	return r.last
}

func (r *reader) turn() {
	r.at.Before += int64(len(r.items))
	r.at.Pages++
	r.at.Done, r.at.Sum, r.at.Ended = 0, "", r.next == nil
	if r.next != nil {
		r.at.Page = *r.next
	}
	r.items, r.next = nil, nil
}

func sumOf(before string, text []byte) string {
	h := sha256.New()
	h.Write([]byte(before))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

func (r *reader) address() string {
	p := r.cfg.page()
	if (p.Next != "" || p.Link) && r.at.Page != "" {
		return r.at.Page
	}
	u, err := url.Parse(r.cfg.URL)
	if err != nil {
		return r.cfg.URL
	}
	query := u.Query()
	for name, value := range r.cfg.Query {
		query.Set(name, value)
	}
	switch {
	case p.Cursor != "" && r.at.Page != "":
		query.Set(p.Param, r.at.Page)
	case p.Offset:
		query.Set(p.Param, strconv.FormatInt(r.at.Before, 10))
	case p.Number:
		query.Set(p.Param, strconv.FormatInt(p.First+r.at.Pages, 10))
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// If fetch fails, nothing is consumed.
func (r *reader) fetch(ctx context.Context) error {
	if err := r.wait(ctx); err != nil {
		return err
	}
	address := r.address()
	a, err := httpcall.Do(ctx, r.client, httpcall.Request{URL: address, Headers: r.cfg.Headers, Timeout: r.cfg.Timeout, Keep: int64(r.cfg.MaxPage)})
	switch {
	case err != nil:
		return err
	case !a.Success:
		if wait := time.Now().Add(min(a.Wait, longestWait)); wait.After(r.soon) {
			r.soon = wait
		}
		return a.Failure()
	case a.Cut:
		return fmt.Errorf("the response is longer than max_page (%d bytes): request fewer items per page", r.cfg.MaxPage)
	}
	items, next, err := r.parse(address, a)
	if err != nil {
		return err
	}
	if err := r.same(items); err != nil {
		return exception.Fatal("", err)
	}
	r.items, r.next = items, next
	return nil
}

// the rate, and the server's Retry-After
func (r *reader) wait(ctx context.Context) error {
	if pause := time.Until(r.soon); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	r.soon = time.Now().Add(r.every)
	return nil
}

// Finished items must not have changed.
func (r *reader) same(items []json.RawMessage) error {
	if r.at.Done == 0 {
		return nil
	}
	sum := ""
	for _, text := range items[:min(r.at.Done, int64(len(items)))] {
		sum = sumOf(sum, text)
	}
	if sum != r.at.Sum {
		return fmt.Errorf("cannot restart: its first %d items differ from the items that were read before; start again with --from-start", r.at.Done)
	}
	return nil
}

func (r *reader) parse(address string, a *httpcall.Answer) (items []json.RawMessage, next *string, err error) {
	p := r.cfg.page()
	find := jsontext.NewFinder()
	list, page := -1, -1
	if r.cfg.Items != "" {
		list = find.AddName(r.cfg.Items)
	}
	if name := cmp.Or(p.Cursor, p.Next); name != "" {
		page = find.AddName(name)
	}
	if err := find.Find(a.Body); err != nil {
		return nil, nil, fmt.Errorf("the response is not JSON: %w: %s", err, jsontext.Shorten(a.Body))
	}
	array := json.RawMessage(bytes.TrimSpace(a.Body))
	if list >= 0 {
		array = find.Found[list]
	}
	if len(array) == 0 || array[0] != '[' {
		if r.cfg.Items == "" {
			return nil, nil, fmt.Errorf("the response is not a JSON array; set items to the path of the array: %s", jsontext.Shorten(a.Body))
		}
		return nil, nil, fmt.Errorf("the response has no array at %s (items): %s", r.cfg.Items, jsontext.Shorten(a.Body))
	}
	if err := json.Unmarshal(array, &items); err != nil {
		return nil, nil, err
	}
	if items == nil {
		items = []json.RawMessage{}
	}
	named := ""
	switch {
	case page >= 0:
		if named, err = textOf(find.Found[page]); err != nil {
			return nil, nil, err
		}
	case p.Link:
		named = linkOf(a.Header)
	case (p.Offset || p.Number) && len(items) > 0:
		return items, &named, nil
	}
	if named == "" {
		return items, nil, nil
	}
	if named, err = r.following(address, named); err != nil {
		return nil, nil, err
	}
	return items, &named, nil
}

// The next page must be on the same host, and not be this page.
func (r *reader) following(address, named string) (string, error) {
	if p := r.cfg.page(); p.Cursor != "" {
		if named == r.at.Page {
			return "", fmt.Errorf("the response names its own cursor %.40q as the next one", named)
		}
		return named, nil
	}
	here, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	to, err := here.Parse(named)
	switch {
	case err != nil:
		return "", errors.New("the URL of the next page is invalid")
	case to.Host != here.Host || to.Scheme != here.Scheme || to.User != nil && to.User.String() != here.User.String():
		return "", fmt.Errorf("the next page is at %s://%s, another host than this page: the headers are for one host only", to.Scheme, to.Host)
	case to.String() == here.String():
		return "", errors.New("the response names itself as the next page")
	}
	return to.String(), nil
}

// A text or a number; null and a missing one are "".
func textOf(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "false":
		return "", nil
	case raw[0] == '"':
		return jsontext.Unquote(raw)
	case raw[0] == '{' || raw[0] == '[' || raw[0] == 't':
		return "", fmt.Errorf("the cursor of the next page is not a text: %s", jsontext.Shorten(raw))
	}
	return string(raw), nil
}

var nextLink = regexp.MustCompile(`<([^>]*)>[^,<]*;\s*rel="?next"?`)

func linkOf(header http.Header) string {
	for _, value := range header.Values("Link") {
		if m := nextLink.FindStringSubmatch(value); m != nil {
			return m[1]
		}
	}
	return ""
}

func (r *reader) RawText() item.RawText {
	return item.RawText{Text: string(r.last), Offset: r.meta.Index, Length: int64(len(r.last))}
}

func (r *reader) OpenRaw(_ context.Context, meta item.Meta, raw item.RawText) error {
	r.raw, r.single, r.meta, r.last = true, []byte(raw.Text), meta, []byte(raw.Text)
	return nil
}
