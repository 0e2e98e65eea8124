package guide

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// jobs/everyday.yaml: its `finally` reports a failure to a webhook, and a restart continues after the
// steps that completed.
func TestTheJobOfEveryDayTellsItsFailureAndGoesOn(t *testing.T) {
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
		text, err := os.ReadFile(filepath.Join(root(t), "jobs", "everyday.yaml"))
		require.NoError(t, err)
		file := e.File("everyday.yaml", string(text))
		e.File("in.csv", "Airport Name,Flight Date,Wildlife Species\nA,2001-01-02,Gull\nB,2001-01-03,\n")
		e.Job(file, "input="+e.Path("in.csv"), "webhook="+server.URL).Failed("has 2 strikes, and 100 are expected")
		require.Regexp(t, `^\{"text":"everyday failed at enough: .* has 2 strikes, .*"\}$`, <-told)
		e.Job(file, "input="+e.Path("in.csv"), "webhook="+server.URL, "least=2").Completed()
		require.Empty(t, told)
		require.FileExists(t, e.Path("archive/in.csv.gz"))
		require.FileExists(t, e.Path("in.csv"))
		e.HasRows("select count(*) from arrived_failures", "0")
	})
}
