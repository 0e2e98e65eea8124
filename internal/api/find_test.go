package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type foundPage struct {
	Executions []struct {
		Execution core.JobExecutionID
		Created   time.Time
	}
	Next       core.JobExecutionID
	SearchedTo *operator.SearchedTo `json:"searched_to"`
	Count      *operator.ExecutionCount
	Notes      []string
}

// Rule OP10.
func TestExecutionsAreFoundByWhatTheyHave(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		loaded := s.call("POST", "/v1/jobs/load/run", map[string]any{"params": map[string]any{"factor": 3}}).acted(true)
		s.over(loaded, core.StatusCompleted)
		broken := s.call("POST", "/v1/jobs/broken/run", map[string]any{"params": map[string]any{"text": "a:b, c", "exact": 1.5}}).acted(true)
		s.over(broken, core.StatusFailed)
		find := func(query string) (page foundPage) {
			require.NoError(t, json.Unmarshal([]byte(s.call("GET", "/v1/executions?"+query, nil).is(http.StatusOK).text), &page))
			return page
		}
		ids := func(query string) (list []core.JobExecutionID) {
			for _, e := range find(query).Executions {
				list = append(list, e.Execution)
			}
			return list
		}
		for query, want := range map[string][]core.JobExecutionID{
			"param=day:2026-11-22":                              {loaded},
			"param=factor:3":                                    {loaded},
			"param=factor:3&param=day:2026-11-22":               {loaded},
			"param=factor:3&param=day:2026-11-23":               nil,
			"param=text:a:b,%20c":                               {broken},
			"param=exact:1.50":                                  {broken},
			"text=MISSING":                                      {broken},
			"text=missing&job=load":                             nil,
			"has=skips_left":                                    {loaded},
			"has=skips_left,redrives":                           nil,
			"actor=anna":                                        {broken, loaded},
			"actor=bob":                                         nil,
			"ended_since=2026-01-01T00:00:00Z":                  {broken, loaded},
			"ended_until=2026-01-01T00:00:00Z":                  nil,
			"longer_than=10h":                                   nil,
			"longer_than=1ns&statuses=FAILED":                   {broken},
			"after=" + fmt.Sprint(loaded):                       {broken},
			"after=" + fmt.Sprint(broken):                       nil,
			"ended_since=2026-01-01T00:00:00Z&limit=1":          {broken},
			"worker=no-such-worker":                             nil,
			"ended_since=2026-01-01T00:00:00Z&limit=1&before=2": {loaded},
		} {
			require.Equal(t, want, ids(query), query)
		}
		first := find("actor=anna&limit=1&count=true")
		require.Equal(t, broken, first.Next)
		require.Equal(t, broken, first.SearchedTo.Execution)
		require.Equal(t, first.Executions[0].Created, first.SearchedTo.Time)
		require.Equal(t, operator.ExecutionCount{Count: 2}, *first.Count)
		require.Zero(t, find("actor=anna&limit=1&before="+fmt.Sprint(broken)).Next, "the search came to the end")
		require.Equal(t, operator.ExecutionCount{Count: 1}, *find("count=true&job=load").Count)
		require.Equal(t, []string{"no execution in the history has a parameter dya, did you mean day?"}, find("param=dya:2026-11-22").Notes)
		var shown struct {
			Steps []struct{ Process operator.Process }
		}
		require.NoError(t, json.Unmarshal([]byte(s.call("GET", "/v1/executions/"+fmt.Sprint(loaded), nil).is(http.StatusOK).text), &shown))
		require.Equal(t, []core.JobExecutionID{broken, loaded}, ids("worker="+shown.Steps[0].Process.Host))

		for query, says := range map[string]string{
			"has=skip_left":         `no such mark, did you mean skips_left? (allowed: skips_left, redrives, stop_requested, lost)`,
			"param=day":             `NAME:VALUE is expected, such as day:2026-11-21`,
			"longer_than=soon":      `it is not a duration above zero`,
			"longer_than=-1s":       `it is not a duration above zero`,
			"before=3&after=2":      `before is set as well`,
			"statuses=FALIED":       `no such status, did you mean FAILED? (allowed: `,
			"longer_then=1h":        `unknown query parameter (did you mean longer_than?)`,
			"staus=FAILED":          `unknown query parameter (there is job, instance, statuses, running, exit, since, until, before, after, param, text, `,
			"ended_until=yesterday": `query.ended_until`,
			"ended_since=2026-02-01T00:00:00Z&ended_until=2026-01-01T00:00:00Z": `ended_until 2026-01-01T00:00:00Z: it is not after ended_since`,
		} {
			s.call("GET", "/v1/executions?"+query, nil).is(http.StatusUnprocessableEntity).says(says)
		}
		s.as(viewerToken, "GET", "/v1/executions?actor=anna", nil).is(http.StatusForbidden).says("the filter actor reads the audit, which is for operators")
		s.as(viewerToken, "GET", "/v1/executions?text=missing", nil).is(http.StatusOK)
	})
}
