// Package schedule computes when a job is due: cron expressions in time zones,
// across clock changes, on business days, and which missed times are caught up.
// It reads no clock and no database. It imports core/calendar, core/row,
// core/task, the standard library and the parser of
// github.com/netresearch/go-cron. The zone database is linked in (time/tzdata,
// about 450 KB); a system one is preferred.
package schedule
