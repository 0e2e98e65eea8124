//test:plain

package httpitem

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func TestEveryBodyComesToAnEnd(t *testing.T) {
	t.Parallel()
	for items, body := range map[string]string{
		"":          `[{"id": 1, "at": {"place": "p1"}}, {"id": "two"}, {"id": 3}]`,
		"body.data": `{"body": {"data": [{"id": 1, "at": {"place": "p1"}}, {"id": "two"}, {"id": 3}], "total": 3}}`,
	} {
		t.Run(items, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "events.json")
			require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
			server := httptest.NewServer(http.FileServer(http.Dir(folder)))
			t.Cleanup(server.Close)
			itemtest.Reader(t, itemtest.ReaderConfig{Source: path, New: func(t testing.TB) item.Reader {
				r, err := newReader(http.DefaultClient, config{URL: server.URL + "/events.json", Items: items}, event(t))
				require.NoError(t, err)
				return r
			}})
		})
	}
}
