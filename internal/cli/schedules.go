package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/wording"
)

// scheduleFlags select next times, a week, or the times of one job.
type scheduleFlags struct {
	operator.SchedulesRequest
	week, zone, before string
	limit              int
}

func (c definitionsCommands) schedulesCommand() *cobra.Command {
	o := scheduleFlags{SchedulesRequest: operator.SchedulesRequest{Count: 1}, limit: 20}
	cmd := &cobra.Command{
		Use:   "schedules [JOB]",
		Short: "List when registered jobs are due, the next one first",
		Long: `Lists the next times of the schedules of registered jobs, each in its own time zone.
A time that a clock change skips is due at the end of the gap. Due times that no worker
has submitted yet come first, and disabled schedules last.

With JOB it lists the next times of this job and the past ones, newest first: whether
the run began, how late, and how it ended; or whether the time was missed, was left out,
or the schedule was disabled. With --week it counts this for all schedules in a week.`,
		Example: "  " + c.env.app.Name + " schedules --count 5\n  " + c.env.app.Name + " schedules nightly\n  " + c.env.app.Name + " schedules --week 2026-W48 --timezone Europe/Berlin",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Count < 1 || o.Count > 1000 {
				return usagef("--count %d: 1 to 1000 are allowed", o.Count)
			}
			switch {
			case len(args) > 0 && o.week != "":
				return usagef("--week is for all schedules, and JOB names one: leave one of them out")
			case len(args) > 0:
				return c.scheduleTimes(cmd.Context(), args[0], o)
			case o.week != "":
				return c.scheduleWeek(cmd.Context(), o)
			}
			return c.schedules(cmd.Context(), o.SchedulesRequest)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Count, "count", o.Count, "the next `N` times of each job")
	f.StringVar(&o.week, "week", "", "count the outcomes of all times in this ISO `WEEK`, or in \"current\"")
	f.StringVar(&o.zone, "timezone", "", "with --week, the `ZONE` in which days begin (default UTC)")
	f.StringVar(&o.before, "before", "", "with JOB, only times before this `TIME`: the next page")
	f.IntVar(&o.limit, "limit", o.limit, "with JOB, at most `N` past times, up to 200")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c definitionsCommands) scheduleTimes(ctx context.Context, job string, o scheduleFlags) error {
	if o.limit < 1 || o.limit > operator.MaxScheduleTimes {
		return usagef("--limit %d: 1 to %d are allowed", o.limit, operator.MaxScheduleTimes)
	}
	req := operator.ScheduleTimesRequest{Job: job, Ahead: min(o.Count, operator.MaxScheduleTimes), Limit: o.limit}
	if o.before != "" {
		before, err := parseMoment("--before", o.before, c.env.now())
		if err != nil {
			return err
		}
		req.Before = before
	}
	var found *operator.ScheduleTimes
	err := c.env.read(ctx, func(s *Session) (err error) {
		if found, err = s.Service.ScheduleTimes(ctx, req); errors.Is(err, ports.ErrNoSuchJob) {
			return c.notRegistered(ctx, s, job)
		}
		return err
	})
	if err != nil {
		return err
	}
	if found == nil { // there is no history yet
		return usagef("job %s is not registered", job)
	}
	return c.printTimes(ctx, wording.ScheduleTimes(found))
}

const ownTime = "Mon 2006-01-02 15:04 -07:00"

func (c definitionsCommands) printTimes(ctx context.Context, found *operator.ScheduleTimes) error {
	list := slices.Clone(found.Coming)
	slices.Reverse(list)
	list = append(list, found.Past...)
	switch {
	case c.env.format == formatJSON:
		return c.env.printJSON(found)
	case c.env.format == formatCSV:
		rows := make([][]string, 0, len(list))
		for i := range list {
			t := &list[i]
			rows = append(rows, []string{t.Key, csvTime(t.At), string(t.Outcome), csvTime(t.Started), csvSeconds(t.Late), executionText(t), string(t.Status), t.Text})
		}
		return c.env.printCSV([]string{"key", "at", "outcome", "started", "late_seconds", "execution", "status", "text"}, rows)
	case found.Error != "":
		return fmt.Errorf("job %s: %s", found.Job, found.Error)
	}
	var rows [][]string
	for i := range list {
		t := &list[i]
		in := "in " + humanize.Duration(t.At.Sub(found.At))
		if t.Outcome != operator.TimePlanned {
			in = humanize.Duration(found.At.Sub(t.At)) + " ago"
		}
		rows = append(rows, []string{t.At.Format(ownTime), in, orDash(executionText(t)), t.Text})
	}
	text := renderTable([]column{{title: "at"}, {title: "", right: true}, {title: "execution", right: true}, {title: "outcome"}}, rows)
	if !found.Enabled {
		text += "\nThe schedule is disabled.\n"
	}
	if err := c.env.print(text); err != nil {
		return err
	}
	if !found.Next.IsZero() {
		c.env.log.InfoContext(ctx, "there are more: --before "+found.Next.Format(time.RFC3339))
	}
	return nil
}

func executionText(t *operator.PlannedTime) string {
	if t.Execution == 0 {
		return ""
	}
	return strconv.FormatInt(int64(t.Execution), 10)
}

func (c definitionsCommands) scheduleWeek(ctx context.Context, o scheduleFlags) error {
	req := operator.WeekRequest{Week: o.week, Timezone: o.zone, Limit: operator.MaxWeekSchedules}
	if o.week == "current" {
		req.Week = ""
	}
	var weeks []*operator.ScheduleWeek
	err := c.env.read(ctx, func(s *Session) error {
		for {
			w, err := s.Service.ScheduleWeek(ctx, req)
			if err != nil {
				return err
			}
			weeks = append(weeks, wording.ScheduleWeek(w))
			if req.After = w.Next; w.Next == "" {
				return nil
			}
		}
	})
	if err != nil || len(weeks) == 0 {
		return err
	}
	whole := weeks[0]
	for _, w := range weeks[1:] {
		whole.Schedules = append(whole.Schedules, w.Schedules...)
	}
	whole.Next = ""
	return c.printWeek(whole)
}

func (c definitionsCommands) printWeek(w *operator.ScheduleWeek) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(w)
	}
	var rows [][]string
	for i := range w.Schedules {
		s := &w.Schedules[i]
		usual := "-"
		if s.Usual > 0 {
			usual = humanize.Seconds(s.Usual)
		}
		rows = append(rows, []string{s.Job, cronText(s.Schedule), s.Timezone, usual, wording.WeekSchedule(s)})
	}
	if c.env.format == formatCSV {
		return c.env.printCSV([]string{"job", "cron", "timezone", "usually", "in_this_week"}, rows)
	}
	text := fmt.Sprintf("Week %s, from %s to %s in %s.\n", w.Week, w.Days[0].Date, w.Days[len(w.Days)-1].Date, w.Timezone)
	for _, d := range w.Days {
		if short := wording.ShortDay(d); short != "" {
			text += short + "\n"
		}
	}
	if len(rows) == 0 {
		return c.env.print(text + "No registered job has a schedule.\n")
	}
	return c.env.print(text + "\n" + renderTable([]column{{title: "job"}, {title: "cron"}, {title: "timezone"}, {title: "usually", right: true}, {title: "in this week"}}, rows))
}

func (c definitionsCommands) schedules(ctx context.Context, req operator.SchedulesRequest) error {
	views := []operator.ScheduleView{}
	err := c.env.read(ctx, func(s *Session) (err error) {
		views, err = s.Service.Schedules(ctx, req)
		if slices.ContainsFunc(views, func(v operator.ScheduleView) bool { return v.Enabled }) {
			c.warnIfNothingLeads(ctx, s)
		}
		return err
	})
	if err != nil && len(views) == 0 {
		return err
	}
	if c.env.format == formatJSON {
		return errors.Join(c.env.printJSON(views), err)
	}
	for _, v := range views {
		if v.Error != "" {
			err = errors.Join(err, fmt.Errorf("job %s: %s", v.Job, v.Error))
		}
	}
	return errors.Join(c.printSchedules(views), err)
}

// scheduledRow is a time, or a disabled schedule.
type scheduledRow struct {
	operator.ScheduledTime
	of  *operator.ScheduleView
	due bool
}

func (r scheduledRow) in(now time.Time) (at, in string) {
	switch {
	case !r.of.Enabled:
		return "-", "disabled"
	case r.due:
		in = "due"
	default:
		in = "in " + humanize.Duration(r.At.Sub(now))
	}
	return r.At.Format(ownTime), in
}

func (c definitionsCommands) printSchedules(views []operator.ScheduleView) error {
	var list []scheduledRow
	for i := range views {
		v := &views[i]
		for _, t := range v.Due {
			list = append(list, scheduledRow{t, v, true})
		}
		for _, t := range v.Next {
			list = append(list, scheduledRow{t, v, false})
		}
	}
	slices.SortStableFunc(list, func(a, b scheduledRow) int { return a.At.Compare(b.At) })
	for i := range views {
		if !views[i].Enabled {
			list = append(list, scheduledRow{of: &views[i]})
		}
	}
	if c.env.format == formatCSV {
		rows := make([][]string, 0, len(list))
		for _, r := range list {
			rows = append(rows, []string{r.of.Job, r.Key, csvTime(r.At), r.of.Timezone, fmt.Sprint(r.due), r.of.Cron, r.of.CatchUp, r.of.Overlap, calendarName(r.of.Schedule), r.of.WhenClosed, fmt.Sprint(r.of.Enabled)})
		}
		return c.env.printCSV([]string{"job", "key", "at", "timezone", "due", "cron", "catch_up", "overlap", "calendar", "when_closed", "enabled"}, rows)
	}
	if len(list) == 0 {
		c.env.log.Info("no registered job has a schedule in " + c.env.databaseText(c.env.settings.Repository.Database))
		return nil
	}
	var rows [][]string
	for _, r := range list {
		at, in := r.in(c.env.now())
		rows = append(rows, []string{at, in, r.of.Job, cronText(r.of.Schedule), r.of.Timezone, r.of.CatchUp, r.of.Overlap})
	}
	text := renderTable([]column{{title: "at"}, {title: "", right: true}, {title: "job"}, {title: "cron"}, {title: "timezone"}, {title: "catch up"}, {title: "overlap"}}, rows)
	for _, v := range views {
		if v.Missed > 0 {
			text += fmt.Sprintf("%s leaves out %s that were missed (catch_up: %s).\n", v.Job, strings.TrimSpace(humanize.Plural(v.Missed, "time")), v.CatchUp)
		}
	}
	return c.env.print(text)
}
