// Package schedule computes when a job is due: cron expressions in time zones, local times that a
// clock change skips or repeats, times on days that are not business days of a calendar, and which
// of the missed times are caught up. It is pure: it reads no clock and no database.
//
// It imports core/calendar, core/row, core/task, the standard library and the parser of
// github.com/netresearch/go-cron. The time zone database is linked in (time/tzdata, about 450 KB),
// so that all machines know the same zones; a system database is preferred if there is one.
package schedule
