package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ExecutionFilter selects executions; zero fields select all.
type ExecutionFilter struct {
	JobName  string
	Instance core.JobInstanceID
	Statuses []core.Status
	ExitCode string
	// CreatedFrom and CreatedTo bound the time of creation, [from, to).
	CreatedFrom, CreatedTo time.Time
	// Before selects executions with a smaller ID: the key of the next page.
	Before core.JobExecutionID
	// RedriveOf selects the executions that redrive this one's skipped items.
	RedriveOf core.JobExecutionID
	// Task selects the executions that a task ran.
	Task int64
	// Parent selects the child jobs of an execution, and ParentCall the child jobs of one of its steps.
	Parent     core.JobExecutionID
	ParentCall core.StepExecutionID
	// Brief leaves out data that a list does not show: the context, the hash of a definition, and with
	// a path its text and files; the job's time, its exclusive key, its task and its parent's call.
	Brief bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// History is the basis for judging a restart: the records, and the checkpoints stored with the data
// (rule C18). Checkpoints may be nil: then there are none.
type History struct {
	Records Explorer
	// Database is the name of the database of the records.
	Database    string
	Checkpoints CheckpointReader
}

// Explorer reads the history.
type Explorer interface {
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	// Executions lists newest first.
	Executions(ctx context.Context, filter ExecutionFilter) ([]core.JobExecution, error)
	// ExecutionIDs lists the IDs of the executions that Executions lists.
	ExecutionIDs(ctx context.Context, filter ExecutionFilter) ([]core.JobExecutionID, error)
	// Steps returns the step executions of one job execution, in order.
	Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error)
	// LastSteps returns the newest execution of each step of the instance, by name, with the number of
	// its attempts, of the job executions from since on.
	LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]StepHistory, error)
	// Instance returns an instance by its key; ErrNotFound if there is none.
	Instance(ctx context.Context, jobName, key string) (*JobInstance, error)
	// Instances lists the instances of a job, newest first.
	Instances(ctx context.Context, filter InstanceFilter) ([]JobInstance, error)
	// LastPurged returns the newest instance of a job among the deleted ones: an execution with only
	// the instance and the parameters. Redrives and repetitions do not count. ErrNotFound if there is
	// none.
	LastPurged(ctx context.Context, jobName string) (*core.JobExecution, error)
	// Jobs lists the newest execution of each job, by name, in brief (ExecutionFilter). Its cost does
	// not grow with the history.
	Jobs(ctx context.Context) ([]core.JobExecution, error)
	// LastExecution returns the newest execution of the instance with this key;
	// ErrNotFound if there is none.
	LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error)
}

// StepHistory is the newest execution of a step in an instance.
type StepHistory struct {
	Last core.StepExecution
	// Attempts is the number of its runs: records of a condition that did not hold (ExitNoop) do not
	// count.
	Attempts int
}

// InstanceFilter selects instances; zero fields select all.
type InstanceFilter struct {
	JobName string
	// Keys selects instances by their keys; nil means all.
	Keys []string
	// BaseKey selects an instance with its repetitions (Parameters.BaseKey).
	BaseKey string
	// NoRedrives leaves out redrives; OnlyBase leaves out redrives and repetitions.
	NoRedrives, OnlyBase bool
	// NoBackfills leaves out instances that a backfill made.
	NoBackfills bool
	// Before selects instances with a smaller ID: the key of the next page.
	Before core.JobInstanceID
	// Limit is the page size; 0 means 50.
	Limit int
}

// BulkExplorer reads many records with one statement.
type BulkExplorer interface {
	// StepsOf returns the step executions of several job executions, in order, by
	// their job execution.
	StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error)
	// StepEntries returns the columns that lists need of all step executions of an instance, of its executions from since to
	// until, in no order: a step may have very many parts, and few of them are shown.
	StepEntries(ctx context.Context, id core.JobInstanceID, since, until core.JobExecutionID) ([]StepEntry, error)
	// PartTotals adds up the counters of the parts of each step of an execution, by the step.
	PartTotals(ctx context.Context, id core.JobExecutionID) (map[core.StepExecutionID]PartTotal, error)
	// NewestAttempts returns the newest execution of each instance that has one, with the facts that
	// decide a launch. The executions have neither parameters nor context nor the text of a definition.
	// dead is as in LaunchRequest.
	NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]NewestAttempt, error)
	// Judged returns the existing executions, newest first, each with the newest attempt of its
	// instance.
	Judged(ctx context.Context, req JudgedRequest) ([]JudgedExecution, error)
	// StepWork returns the work that the steps of several job executions have submitted, apart from
	// partitions.
	StepWork(ctx context.Context, ids ...core.JobExecutionID) (StepWork, error)
	// LastExecutions returns the newest execution of each of the instances that has one,
	// in brief (ExecutionFilter).
	LastExecutions(ctx context.Context, ids ...core.JobInstanceID) (map[core.JobInstanceID]core.JobExecution, error)
	// SkipCounts counts the skipped items of a job execution, by step, phase and
	// class, in this order: the first 5,000 of them.
	SkipCounts(ctx context.Context, id core.JobExecutionID) ([]SkipCount, error)
	// Redrives returns the newest redrives of an execution and of earlier ones of its instance, newest first.
	Redrives(ctx context.Context, of core.JobExecutionID, limit int) ([]Redrive, error)
}

// Redrive is an execution that redrives skipped items of another one.
type Redrive struct {
	ID, RedriveOf core.JobExecutionID
	Status        core.Status
}

// PartTotal has the counters of the parts of a step, as in core.StepExecution.
type PartTotal struct{ Counters, Before core.Counters }

// StepEntry is a step execution without its texts.
type StepEntry struct {
	ID        core.StepExecutionID
	Execution core.JobExecutionID
	Manager   core.StepExecutionID // of a part
	Name      string
	Status    core.Status
	// Noop: its condition did not hold.
	Noop bool
	// Branch: it has a place in a flow.
	Branch bool
	// Skips and Warns: it has skipped items, and warnings.
	Skips, Warns bool
	// Leased: a worker has it, or had it. HasError: it has a text of an error.
	Leased, HasError bool
}
