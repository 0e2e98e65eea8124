package console_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestTheTableOfExecutionsHasParametersAndTheFailedStepAsColumns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.run("load", nil)
		s.run("load", map[string]string{"day": "2026-11-23", "input": filepath.Join(s.dir, "bad.csv")})
		parts := s.run("parts", nil)
		page := s.get("/executions?job=load").is(http.StatusOK).clean()
		page.says(`<th scope="col">day</th>`, `<td class="value">2026-11-23</td>`, `<th scope="col">failed step</th>`, `?element=load#element">load</a>`)
		require.NotContains(t, page.text, "<th scope=\"col\">parameters</th>")
		require.NotContains(t, page.text, "step load: ")
		s.get("/executions").is(http.StatusOK).clean().says(`/executions/` + text(parts) + `?element=load#element">load</a>`)
		require.NotContains(t, s.get("/executions?job=parts").is(http.StatusOK).clean().text, `<th scope="col">day</th>`)
		require.NotContains(t, s.get("/executions?statuses=COMPLETED").is(http.StatusOK).clean().text, "failed step")
	})
}
