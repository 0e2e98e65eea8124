package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAReportIsOneFileWithTheWordsOfThePages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		failed := s.run("load", map[string]string{"input": "bad.csv"})
		got := s.get("/executions/" + id(failed) + "/report.html").is(http.StatusOK)
		require.Contains(t, got.header.Get("Content-Disposition"), "attachment")
		wellFormed(t, got.path, got.text)
		text, err := console.Report(t.Context(), s.config, failed)
		require.NoError(t, err)
		for _, report := range []string{got.text, string(text)} {
			for _, has := range []string{"Execution " + id(failed) + " of job load failed", "skip limit of 3 exceeded", "Skipped items", "Job file", "Audit", "launch"} {
				require.Contains(t, report, has)
			}
			for _, not := range []string{"<script", "<form", "<nav", " src=", `href="/`, "http://", "/static/"} {
				require.NotContains(t, strings.ReplaceAll(report, "http://www.w3.org", ""), not)
			}
		}
		_, err = console.Report(t.Context(), s.config, failed+100)
		require.ErrorContains(t, err, "not found")
	})
}

func TestThePageOfASkippedItemMarksTheMistake(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("in.csv", "id\n1\nx7\n")
		s.run("load", nil)
		s.get("/skips/1").is(http.StatusOK).clean().says("<mark><code>id</code></mark>", "<pre><mark>x7</mark></pre>")
	})
}
