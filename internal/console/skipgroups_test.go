package console_test

import (
	"net/http"
	"testing"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestSkippedItemsOfAllJobsAreInGroups(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.get("/skips").is(http.StatusOK).clean().says("No skipped items in this window", "0 skipped items read")
		one := text(s.run("load", nil))
		s.write("in.csv", "id\n1\nab\n3\nc\n")
		two := text(s.run("load", map[string]string{"day": "2026-11-23"}))
		page := s.get("/skips").is(http.StatusOK).clean()
		page.says(">load</a>", "field id: &#34;…&#34; is not an int", `<td class="n">3</td><td class="n">3</td>`, "3 skipped items read.",
			`href="/executions/`+two+`/skips?step=load&amp;phase=read">`+two+` (2)</a>`, `href="/executions/`+one+`/skips?step=load&amp;phase=read">`+one+` (1)</a>`)
		s.get("/skips?job=load&phase=read&window=all").is(http.StatusOK).clean().says("job: load", `<td class="n">3</td>`)
		s.get("/skips?job=other").is(http.StatusOK).clean().says("There are none.", "3 skipped items read.")
		s.get("/skips?window=x&phase=y").is(http.StatusUnprocessableEntity).clean().says("window=x: no such window", "phase=y: no such phase")
	})
}
