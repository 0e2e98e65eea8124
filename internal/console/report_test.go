package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
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
		s.write("in.csv", "id,note,\"a <b>\"\n1,x,y\nx7,\"a, b\",z\n2\n")
		s.run("load", nil)
		page := s.get("/skips/1").is(http.StatusOK).clean()
		page.says(`<th scope="col"><mark>id</mark></th><th scope="col">note</th><th scope="col">a &lt;b&gt;</th>`,
			"<td><mark><code>x7</code></mark></td><td><code>a, b</code></td><td><code>z</code></td>", "<pre><mark>x7</mark>,&#34;a, b&#34;,z</pre>")
		s.get("/skips/2").is(http.StatusOK).clean().says(`<td><code>2</code></td><td><mark>(empty)</mark></td><td><code></code></td>`)

		one, err := s.app.Service.SplitSkip(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, []operator.RawField{
			{Name: "id", Text: "x7", From: 0, To: 2, Bad: true}, {Name: "note", Text: "a, b", From: 3, To: 9}, {Name: "a <b>", Text: "z", From: 10, To: 11},
		}, one.Fields)
		db := testengine.New(t, url)
		db.Exec("UPDATE surfin_skipped_item SET raw = replace(raw, 'x7', 'x7\\" + "\"') WHERE id = 1")
		s.get("/skips/1").is(http.StatusOK).clean().says("Its text is not split into columns: ", "bare &#34; in non-quoted-field", "<mark><code>id</code></mark>", "<h2>Line</h2>")
		for _, c := range [][2]string{
			{"replace(definition_text, 'step: load', 'step: other')", "steps has no field load"}, {"'job: ['", "load.yaml:1:"}, {"''", "no stored job definition"},
		} {
			db.Exec("UPDATE surfin_job_execution SET definition_text = " + c[0])
			s.get("/skips/2").is(http.StatusOK).clean().says("Its text is not split into columns: ", c[1], "<pre>2</pre>")
		}
	})
}
