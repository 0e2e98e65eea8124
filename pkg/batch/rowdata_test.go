package batch_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// Rule OP7.
func TestAWebhookHasNoValueOfARowUnlessItAsks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		told := make(chan string, 2)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			if err == nil {
				told <- string(text)
			}
		}))
		defer server.Close()
		e := batchtest.New(t, batchtest.On(url))
		e.File("in.csv", "id\n1\nada@example.org\n")
		job := e.File("job.yaml", `
job: load
flow:
- step: load
  chunk: {reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: {name: numbers, create: true}}}
finally:
- step: quiet
  tasklet: {http: {url: "`+server.URL+`", json: {text: "${job.name}, ${job.failed_step}: ${job.error}"}}}
- step: whole
  tasklet: {http: {url: "`+server.URL+`", row_data: true, body: "${job.error}"}}
`)
		e.Job(job).Failed("ada@example.org")
		require.JSONEq(t, `{"text": "load, load: step load ended FAILED (FAILED); surfin show 1 has the message"}`, <-told)
		require.Contains(t, <-told, "ada@example.org")
	})
}
