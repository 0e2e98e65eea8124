package httptask

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/surfin-batch/surfin/internal/httpcall"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const (
	// of an answer that becomes the result `body`
	maxBodyBytes = 8 << 10
	keyKey       = "surfin.http.key"
)

// Execute sends the request.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	key, err := t.key(ctx, c)
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	request := t.request(key)
	answer, err := t.send(ctx, request, c)
	if err != nil {
		return fmt.Errorf("http: %s: %w", httpcall.Shown(t.config.URL), err)
	}
	return t.keep(ctx, c, answer)
}

// one key for all requests of the step, stored before the first
func (t *tasklet) key(ctx context.Context, c *core.StepContribution) (string, error) {
	if !t.config.Idempotency {
		return "", nil
	}
	if c.Context == nil {
		return rand.Text(), nil
	}
	if stored, ok := c.Context.Get(keyKey); ok {
		return fmt.Sprint(stored), nil
	}
	key := rand.Text()
	if err := c.Context.Put(keyKey, key); err != nil {
		return "", err
	}
	if c.Save == nil {
		return key, nil
	}
	return key, c.Save(ctx)
}

// An error comes with the answer, if there is one.
func (t *tasklet) send(ctx context.Context, request httpcall.Request, c *core.StepContribution) (*httpcall.Answer, error) {
	a, err := httpcall.Do(ctx, t.client, request)
	if err != nil {
		return nil, err
	}
	c.Out["status"], c.Out["body"] = int64(a.Code), nil
	if a.Readable() && len(a.Body) <= maxBodyBytes {
		c.Out["body"] = string(a.Body)
	}
	switch {
	case a.Success && a.Cut:
		return a, fmt.Errorf("the response is longer than max_response (%d bytes)", t.config.MaxResponse)
	case a.Success:
		return a, nil
	}
	return a, a.Failure()
}

func (t *tasklet) keep(ctx context.Context, c *core.StepContribution, a *httpcall.Answer) error {
	out := t.config.Out
	if out == nil {
		return nil
	}
	if a.Code == http.StatusNoContent || len(a.Body) == 0 {
		return errors.New("http: out: the response has no body")
	}
	reader, err := out.FromDocuments(&document{a.Body})
	if err != nil {
		return fmt.Errorf("http: out: %w", err)
	}
	items := reader.NewItems(1)
	if err := reader.Fill(ctx, items, 1); err != nil {
		return fmt.Errorf("http: out: the response does not fit: %w", err)
	}
	r, ok := items.At(0).(item.Row)
	if !ok {
		return fmt.Errorf("http: out: %s is a Go type: list fields and types instead", out.Name())
	}
	for i, v := range r.Values() {
		c.Out[r.Schema().Field(i).Name] = v.Any()
	}
	return nil
}

type document struct{ text []byte }

func (d *document) ReadDocument(context.Context) ([]byte, error) {
	if d.text == nil {
		return nil, io.EOF
	}
	text := d.text
	d.text = nil
	return text, nil
}
