package console_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const hourlyJob = `job: hourly
schedule: {cron: "0 * * * *", timezone: Europe/Berlin, catch_up: none, overlap: forbid}
flow:
- step: only
  tasklet: {sql: select 1}
`

// Rule OP12.
func TestNowAndSchedulesHaveTheirTimeLines(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		empty := s.get("/").is(http.StatusOK).clean().says("The last 24 hours and the next 12", "No job ran, and none is planned.")
		require.NotContains(t, empty.text, "calendar")
		s.get("/schedules").is(http.StatusOK).clean().says("No schedule is active")
		s.get("/schedules/load").is(http.StatusOK).clean().says("Job load has no schedule")
		s.get("/schedules/lod").is(http.StatusNotFound).clean()

		s.write("hourly.yaml", hourlyJob)
		_, err := s.app.Service.Register(t.Context(), operator.RegisterRequest{File: filepath.Join(s.dir, "hourly.yaml")})
		require.NoError(t, err)
		id := text(s.run("load", nil))
		s.run("hourly", nil)

		now := s.get("/?tz=Europe/Berlin").is(http.StatusOK).clean().says(`class="lanes calendar"`, `href="/executions/`+id+`"`, `class="span planned"`, "As a list", "12 planned")
		require.Contains(t, plain(now.text), "hourly 1 COMPLETED, 12 planned")
		require.Equal(t, 12, strings.Count(now.text, `class="span planned"`))
		require.Regexp(t, `statuses=COMPLETED&amp;ended_since=\d{4}-`, now.text)

		week := s.get("/schedules?tz=Europe/Berlin&week=2026-W43").is(http.StatusOK).clean().says("Week 2026-W43", "week=2026-W42", "week=2026-W44", "Sunday, 25 October has 25 hours", `href="/schedules/hourly"`)
		require.Contains(t, plain(week.text), "no time in this week", "it was registered later")
		s.get("/schedules?tz=Europe/Berlin&week=2027-W12").is(http.StatusOK).clean().says("167 planned", "Sunday, 28 March has 23 hours")
		s.get("/schedules?tz=Europe/Berlin&week=2027-W43").is(http.StatusOK).clean().says("169 planned", "02:00 occurs twice, this is the second (+01:00)")
		s.get("/schedules?week=2026-W99").is(http.StatusUnprocessableEntity).clean().says("week=2026-W99: expected a week of a year", "Next times")

		times := s.get("/schedules/hourly?tz=UTC").is(http.StatusOK).clean().says("Schedule of job hourly: next in", "in Europe/Berlin", "Next times", "There are none: the job was registered")
		next := time.Now().In(time.UTC).Truncate(time.Hour).Add(time.Hour)
		require.Contains(t, times.text, next.Format("2006-01-02 15:04:05"))
		s.get("/jobs/hourly").is(http.StatusOK).clean().says(`href="/schedules/hourly"`)

		_, err = s.app.Service.Disable(t.Context(), "hourly")
		require.NoError(t, err)
		s.get("/schedules/hourly").is(http.StatusOK).clean().says("Schedule of job hourly is disabled")
		s.get("/schedules/hourly?before=2020-01-01").is(http.StatusOK).clean().says("newest")
	})
}
