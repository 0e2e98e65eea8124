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
		require.Regexp(t, `^\{"text":"everyday failed at enough: step enough ended FAILED .*; surfin show 1 has the message"\}$`, <-told)
		e.Job(file, "input="+e.Path("in.csv"), "webhook="+server.URL, "least=2").Completed()
		require.Empty(t, told)
		require.FileExists(t, e.Path("archive/in.csv.gz"))
		require.FileExists(t, e.Path("in.csv"))
		e.HasRows("select count(*) from arrived_failures", "0")
	})
}

func TestTheJobTellsTheFailureThatItCleanedUpAfter(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	file := e.File("cleanup.yaml", `
job: cleanup
parameters: {n: {type: int}}
flow:
- {step: tables, tasklet: {sql: "create table if not exists tries (n int); create table if not exists heard (step text, error text)"}}
- step: try
  tasklet: {sql: {query: "select count(*) n from tries", out: {n: int}}}
  expect: params.n == 1 or out.n > 0
  next: {EXPECT_FAILED: note}
- {step: work, tasklet: {sql: insert into missing values (1)}, when: params.n == 1, next: {FAILED: sweep, "*": judge}}
- {step: sweep, tasklet: {sql: delete from tries}, next: fail}
- {step: note, tasklet: {sql: insert into tries values (1)}, next: try}
- decide: judge
  choose:
  - {when: params.n == 3, next: end}
  - next: {fail: {exit: NO}}
finally:
- {step: tell, tasklet: {sql: "insert into heard values (${job.failed_step}, ${job.error})"}}
`)
	e.Job(file, "n=1").Failed("sweep ended with exit code COMPLETED; before it: step work")
	e.HasRows("select step, error like 'sweep % before it: step work: %missing%' from heard", "work|1")
	e.Job(file, "n=2").Failed("judge ended with exit code ")
	e.HasRows("select step, error like '%before it%' from heard", "work|1", "|0")
}
