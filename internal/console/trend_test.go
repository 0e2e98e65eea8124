package console_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAJobHasItsTrendAndItsCalendar(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		one := text(s.run("load", nil))
		few := s.get("/jobs/load").is(http.StatusOK).clean().text
		require.NotContains(t, few, "<h2>Trend</h2>")
		require.NotContains(t, few, "95 of 100")
		failed := text(s.run("load", map[string]string{"day": "2026-11-23", "input": filepath.Join(s.dir, "bad.csv")}))
		page := s.get("/jobs/load").is(http.StatusOK).clean()
		page.says("<h2>Trend</h2>", "Duration of the last runs, oldest first", "The runs as a list", "Calendar by day: November 2026",
			`<a href="/executions/`+one+`" title="2026-11-22">`, `<a href="/executions/`+failed+`" title="2026-11-23">`, "1 day complete, 1 not complete",
			`href="/jobs/load?month=2026-10#calendar"`)
		earlier := s.get("/jobs/load?month=2026-02").is(http.StatusOK).clean().says("Calendar by day: February 2026", "never run")
		require.NotContains(t, earlier.text, `title="2026-02`)
		s.get("/jobs/load?month=x&param=note").is(http.StatusUnprocessableEntity).clean().says("month=x: not a month", "param=note: job load has no identifying parameter", "November 2026")
		s.run("parts", nil)
		require.NotContains(t, s.get("/jobs/parts").is(http.StatusOK).clean().text, "Calendar by")
	})
}
