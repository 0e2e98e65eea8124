package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// UnclearedRequest selects executions that may need a person.
type UnclearedRequest struct {
	// Since selects executions that were created then or later.
	Since time.Time
	// Before selects smaller IDs: the next page; 0 means all.
	Before core.JobExecutionID
	Limit  int
}

// Uncleared is a page of them.
type Uncleared struct {
	// Attempts are the newest of their instances, and FAILED, STOPPED or UNKNOWN. Child jobs are left
	// out, since their parents fail with them; so is an execution that its task tries again, and a
	// redrive that a later one has made up for.
	Attempts []core.JobExecutionID
	// Skipped are executions, apart from redrives, with skipped items that no redrive has taken, in
	// instances that have completed since.
	Skipped []core.JobExecutionID
	// Reached is the last ID to which the search is complete: the next page begins there. 0 means that
	// everything was searched.
	Reached core.JobExecutionID
}

// SkipsLeft counts skipped items that no redrive has taken.
type SkipsLeft struct {
	// Count is at most the requested number. Items of them can be redriven as stored; the others have
	// only the text that could not be read.
	Count, Items int
}

// EndedCounts counts the executions that ended in a window of time.
type EndedCounts struct {
	Statuses map[core.Status]int
	// Since is when the oldest counted one ended.
	Since time.Time
}

// DeadTopic counts the dead events of a topic.
type DeadTopic struct {
	Topic string
	Count int
	// Since is when the oldest of them died.
	Since time.Time
}

// OpenStep is a running step without parts, or a part.
type OpenStep struct {
	ID        core.StepExecutionID
	Execution core.JobExecutionID
	Name      string
	Commits   int64
	StartedAt time.Time
}

// Attention finds problems that may need a person. The cost of each statement is bounded, and does not
// grow with the history.
type Attention interface {
	// OldestRunning returns at most limit executions that are not over, the oldest first.
	OldestRunning(ctx context.Context, limit int) ([]core.JobExecutionID, error)
	// OpenSteps returns the running steps, of some executions, that started before a time.
	OpenSteps(ctx context.Context, before time.Time, ids ...core.JobExecutionID) ([]OpenStep, error)
	// Uncleared returns a page of ended executions, newest first.
	Uncleared(ctx context.Context, req UnclearedRequest) (Uncleared, error)
	// SkipsLeft counts at most so many items of each execution.
	SkipsLeft(ctx context.Context, most int, ids ...core.JobExecutionID) (map[core.JobExecutionID]SkipsLeft, error)
	// EndedSince counts the executions that ended since then, at most so many of the newest.
	EndedSince(ctx context.Context, from time.Time, most int) (EndedCounts, error)
	// DeadTopics counts the dead events by topic, at most so many in all.
	DeadTopics(ctx context.Context, most int) ([]DeadTopic, error)
	// LeftOut returns the acts by which the scheduler left out times since then, newest first.
	LeftOut(ctx context.Context, since time.Time) ([]Act, error)
	// WaitingRuns returns the clock of the database and, by the definition's ID, when its oldest
	// scheduled run that has not begun was submitted.
	WaitingRuns(ctx context.Context) (now time.Time, waiting map[int64]time.Time, err error)
}

// JobRuns are the newest executions of a job, without redrives.
type JobRuns struct {
	JobName string
	Newest  []RunRef
	// Completed ended last.
	Completed []core.JobExecutionID
}

// RunRef is an execution with its status.
type RunRef struct {
	ID     core.JobExecutionID
	Status core.Status
}

// Run is an execution in numbers.
type Run struct {
	RunRef
	StartedAt, EndedAt time.Time
	// Rows are those that the steps of this attempt read or, if they read none, wrote; nil if they were
	// not counted, because the execution has too many steps.
	Rows *int64
	// Skips are the items that its steps skipped, counted with Rows.
	Skips int64
}

// CalendarFilter selects executions of a job, apart from redrives, by a parameter.
type CalendarFilter struct {
	JobName, Param string
	// Values are its texts, at most 1,000, such as the days of a month.
	Values []string
}

// CalendarRun is an execution with the value of the parameter.
type CalendarRun struct {
	Value    string
	ID       core.JobExecutionID
	Instance core.JobInstanceID
	Status   core.Status
}

// Calendar are the executions, newest first. The values in Unread may be incomplete: too many executions, of
// all jobs, have the value.
type Calendar struct {
	Runs   []CalendarRun
	Unread []string
}

// JobHistory reads the recent executions of many jobs with few statements.
type JobHistory interface {
	// JobNames returns the names of jobs in the history, at most limit.
	JobNames(ctx context.Context, limit int) ([]string, error)
	// JobRuns returns the executions of the named jobs: at most so many newest, and completed ones.
	JobRuns(ctx context.Context, newest, completed int, jobs ...string) ([]JobRuns, error)
	// Runs returns the existing executions. It counts the rows of the first ones in the order of the
	// request, with at most 100,000 steps in all.
	Runs(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID]Run, error)
	// Calendar returns the executions of a job with some values of a parameter. It reads at most 20,000
	// entries of an index for each of two statements.
	Calendar(ctx context.Context, filter CalendarFilter) (Calendar, error)
	// SkipGroups groups the newest skipped items of all executions.
	SkipGroups(ctx context.Context, filter SkipGroupFilter) (SkipGroups, error)
	// FailedSteps returns the name of the first step with a failure of each of the executions that has
	// one.
	FailedSteps(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID]string, error)
	// EndedRuns returns the executions that ended since then, at most so many of the newest.
	EndedRuns(ctx context.Context, since time.Time, limit int) ([]RunSpan, error)
	// ActiveRuns returns at most limit executions that are not over, the oldest first.
	ActiveRuns(ctx context.Context, limit int) ([]RunSpan, error)
	// ScheduledRuns returns the submitted runs of scheduled times.
	ScheduledRuns(ctx context.Context, times ...ScheduledKey) (map[ScheduledKey]ScheduledRun, error)
	// ScheduleActs returns the acts since then that decide about scheduled times, oldest first:
	// times left out by the scheduler, and jobs registered, enabled and disabled. It reads at most limit
	// acts of all kinds, the oldest.
	ScheduleActs(ctx context.Context, since time.Time, limit int) ([]Act, error)
}

// RunSpan is an execution with its times.
type RunSpan struct {
	ID      core.JobExecutionID
	JobName string
	Status  core.Status
	// StartedAt is when it was created, if it has not started.
	StartedAt, EndedAt time.Time
}

// ScheduledKey is a scheduled time of a registered job.
type ScheduledKey struct {
	Definition int64
	Key        string
}

// ScheduledRun is the task of a scheduled time, with its executions.
type ScheduledRun struct {
	Task  int64
	State string
	// Error of the task: why it did not run the job.
	Error     string
	CreatedAt time.Time
	// Attempts are its executions, oldest first.
	Attempts []RunSpan
}

// OtherTimes ends the detail of a registration that changed the times of the schedule: earlier times do not
// belong to it.
const OtherTimes = " (other times)"
