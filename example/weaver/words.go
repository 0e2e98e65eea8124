package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// keptBytes is how much of a page is read.
const keptBytes = 1 << 20

// words is the handler of tasks of type words: it counts the words of the page at a URL.
type words struct{ client *http.Client }

// newWords gets its dependencies from the application.
func newWords(client *http.Client) *words { return &words{client} }

// Execute implements task.Handler. A task without a URL ends at once: no other attempt helps. An error of the
// network, or an answer other than 200, is tried again.
func (w *words) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	var asked struct {
		URL string `json:"url"`
	}
	if err := t.Decode(&asked); err != nil {
		return task.Outcome{}, batch.Fatal("words", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.URL, nil)
	if err != nil {
		return task.Outcome{}, batch.Fatal("words", err)
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return task.Outcome{}, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusOK {
		return task.Failure("the server answered " + answer.Status).WithRetryHint(json.RawMessage(`{"backoff_ms": 1000}`)), nil
	}
	page, err := io.ReadAll(io.LimitReader(answer.Body, keptBytes))
	if err != nil {
		return task.Outcome{}, err
	}
	count := fmt.Sprintf(`{"words": %d}`, len(strings.Fields(string(page))))
	return task.Success().WithArtifact(task.URL(asked.URL)).WithArtifact(task.JSON(json.RawMessage(count))), nil
}
