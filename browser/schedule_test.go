package browser

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const dailyJob = `job: daily
parameters: {day: {type: date}}
schedule: {cron: "30 2 * * *", timezone: Europe/Berlin, parameters: {day: "${schedule.previous_day}"}}
flow:
- {step: one, tasklet: {sql: select 1}}
`

// audits checks the acts of anna in the audit.
func (b *tab) audits(acts ...string) {
	b.t.Helper()
	b.open("/audit?actor=anna")
	text := b.text("main")
	for _, act := range acts {
		require.Contains(b.t, text, act)
	}
}

func TestAScheduleIsPausedRunNowAndResumed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s, server := acting(t, dbURL, map[string]string{"jobs/daily.yaml": dailyJob})
		s.worker().await("waiting for work")
		b := newTab(t, server.at, "schedule")
		b.signIn(annaToken, "/jobs/daily")
		b.click("main", "Register it")
		b.look("register")
		require.EqualValues(t, http.StatusOK, b.button("Register job daily"))
		require.Equal(t, "/schedules/daily", b.path())
		b.click("main", "Pause")
		require.EqualValues(t, http.StatusOK, b.button("Pause the schedule of job daily"))
		b.await(says("Schedule of job daily is disabled"))

		b.click("main", "Run it")
		b.await(says("The schedule is not due at this time"))
		b.fill("time", "2026-11-27T02:30")
		b.await(says("with day=2026-11-26", "The schedule is due then."))
		b.fill("reason", "the file came late")
		b.look("schedule run")
		require.EqualValues(t, http.StatusOK, b.button("Run it for 2026-11-27T02:30"))
		require.Equal(t, "/tasks/1", b.path())
		b.await(`document.querySelector("h1").innerText === "Task 1 of type job: succeeded"`)
		b.click("main", "execution 1")
		b.await(says("Execution 1 of job daily completed", "day=2026-11-26"))

		// Now: the page names the minute, and another press finds its task.
		b.open("/schedules/daily/run")
		require.EqualValues(t, http.StatusOK, b.clicks(`document.querySelector("button.main")`))
		require.Equal(t, "/tasks/2", b.path())
		b.open("/schedules/daily/run?time=2026-11-27T02:30")
		require.Contains(t, b.text("main"), "has task 1 already")

		b.open("/schedules/daily")
		b.click("main", "Resume")
		require.EqualValues(t, http.StatusOK, b.button("Resume the schedule of job daily"))
		b.await(says("Schedule of job daily: next in"))
		b.audits("register", "disable", "enable", "for 2026-11-27T02:30, task 1: the file came late")
	})
}

func TestTasksEventsAndSettingsAreChangedInTheNameOfThePerson(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s := newScene(t, dbURL, map[string]string{"jobs/daily.yaml": dailyJob})
		s.env = append(append(s.env, "SURFIN_API_LISTEN="+freePort(t), "SURFIN_TASKS_SHELL=true"), tokens()...)
		s.does(0, "migrate")
		server := s.serve()
		now := "strftime('%s', 'now') * 1000000"
		if isPostgres(dbURL) {
			now = "now()"
		}
		s.does(0, "sql", "--write", "insert into surfin_event (topic, subject, dedupe_key, offer_after, last_error, created_at, dead_at) values ('paid', 7, 'k', 0, 'the account is closed', "+now+", "+now+")")
		b := newTab(t, server.at, "work")
		b.signIn(annaToken, "/tasks")
		b.click("main", "Submit a task")
		b.fill("type", "shell")
		b.fill("title", "says hello")
		b.fill("payload", `{"script": "echo hello"`)
		b.refused = true
		require.EqualValues(t, http.StatusUnprocessableEntity, b.button("Submit it"))
		b.await(says("the payload is not JSON"))
		b.look("submit refused")
		b.fill("payload", `{"script": "echo hello"}`)
		require.EqualValues(t, http.StatusOK, b.button("Submit it"))
		require.Equal(t, "/tasks/1", b.path())
		b.click("main", "Cancel it")
		b.fill("reason", "too early")
		require.EqualValues(t, http.StatusOK, b.button("Cancel task 1 of type shell"))
		b.await(`document.querySelector("h1").innerText === "Task 1 of type shell: canceled"`)

		s.worker().await("waiting for work")
		b.click("main", "Run it again")
		require.EqualValues(t, http.StatusOK, b.button("Run again task 1 of type shell"))
		b.await(`document.querySelector("h1").innerText === "Task 1 of type shell: succeeded"`)
		b.click("main", "its output")
		require.Contains(t, b.text("main"), "hello")
		b.look("task output")
		b.open("/workers")
		b.await(says("rest of its lease", "shell"))
		b.look("workers")

		b.open("/events")
		b.click("main", "/events/1/offer")
		require.EqualValues(t, http.StatusOK, b.button("Offer event 1"))
		b.open("/settings")
		b.click("main", "/settings/history_retention_days")
		b.fill("value", "400")
		require.EqualValues(t, http.StatusOK, b.button("Set history_retention_days"))
		require.Contains(t, b.text("main"), "400")
		b.audits("submit", "cancel", "too early", "rerun", "offer", "set")
	})
}
