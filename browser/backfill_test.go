package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const daysJob = `job: days
description: Books a day.
parameters: {day: {type: date}}
flow:
- step: book
  chunk: {reader: {csv: {path: "in-${params.day}.csv", item: {id: int}}}, writer: {table: {name: booked, create: true}}}
`

// A missing week is back-filled from the calendar: two of its days are complete, and one has failed.
func TestAMissingWeekIsBackFilledFromTheCalendar(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		files := map[string]string{"jobs/days.yaml": daysJob}
		week := []string{"2024-02-01", "2024-02-02", "2024-02-03", "2024-02-04", "2024-02-05", "2024-02-06", "2024-02-07"}
		for i, day := range week {
			files["jobs/in-"+day+".csv"] = fmt.Sprintf("id\n%d\n", i+1)
		}
		files["jobs/in-"+week[4]+".csv"] = "id\nx\n"
		s, server := acting(t, dbURL, files)
		s.does(0, "run", "jobs/days.yaml", "day="+week[1])
		s.does(0, "run", "jobs/days.yaml", "day="+week[2])
		s.does(1, "run", "jobs/days.yaml", "day="+week[4])
		s.write("jobs/in-"+week[4]+".csv", "id\n5\n")
		s.worker()

		b := newTab(t, server.at, "backfill")
		b.signIn(annaToken, "/jobs/days?month=2024-02")
		b.await(says("Calendar by day: February 2024", "2 days complete, 1 not complete, 26 up to today without a run"))
		b.click("#calendar", "Run the missing days")
		b.await(says("29 values: 26 new, 0 resumed, 3 left out, 0 refused"))
		b.fill("to", "02072024") // as a browser in English has dates
		b.button("Show what it does")
		b.await(says("7 values: 4 new, 0 resumed, 3 left out, 0 refused", "leave out: complete by execution 1"))
		b.look("backfill")
		b.button("Run 4 instances")
		require.Regexp(t, `^/groups/\d+$`, b.path())
		b.await(`document.querySelector("h1").innerText === "Group 1 is completed"`) // without a reload
		b.look("backfill group")

		b.open("/jobs/days/backfill?only=all&from=" + week[0] + "&to=" + week[6])
		b.await(says("0 new, 1 resumed, 6 left out", "resume execution 3"))
		require.EqualValues(t, http.StatusOK, b.button("Run 1 instance"))
		b.await(`document.querySelector("h1").innerText === "Group 2 is completed"`)
		b.open("/jobs/days?month=2024-02")
		b.await(says("7 days complete, 0 not complete"))
		require.Regexp(t, `\b7 +7\b`, s.does(0, "sql", "select count(*) as n, count(distinct id) as ids from booked"))
	})
}
