// Package schedule says when a job is due: cron expressions in time zones, what happens
// to local times that a clock change skips or repeats, and to those on days that are not business
// days of a calendar, and which of the missed times are caught up. It is pure: it reads no clock and no database.
//
// It imports core/calendar, core/row, core/task, the standard library and the parser of github.com/netresearch/go-cron. The time zone
// database is linked in (time/tzdata, about 450 KB), so that a zone that one machine knows
// is known on all; a database of the system is preferred where there is one.
package schedule
