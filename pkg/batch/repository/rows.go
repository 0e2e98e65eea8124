package repository

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// The rows of the tables. Names of types and fields are names of tables and columns. A missing text
// is '', never NULL; a time that has not come is NULL.

type jobInstance struct {
	ID          core.JobInstanceID `gorm:"primaryKey"`
	JobName     string
	InstanceKey string
	BaseKey     string // empty for a redrive
	Attempts    int64  // launches
	Backfilled  bool   // a backfill made it
	LocalTimes  *bool  // NULL: made before local times were of the job's time zone (rule D5)
	CreatedAt   instant
}

type jobExecution struct {
	ID              core.JobExecutionID `gorm:"primaryKey"`
	InstanceID      core.JobInstanceID
	JobName         string
	Attempt         int
	Status          core.Status
	StatusBefore    core.Status // the status before the last transition
	ExitCode        string
	ErrorText       string
	DefinitionHash  string
	DefinitionText  string
	DefinitionPath  string
	DefinitionFiles string // JSON: the files that the job file names
	Context         string
	Owner           string
	Epoch           int64
	Active          *int64 // 1 while it runs, else NULL: unique together with the instance
	StopRequested   bool
	StepCount       int64 // of started steps; written under the guard of StartStep
	LeaseUntil      instant
	JobTime         instant // when the instance was first launched
	CreatedAt       instant
	StartedAt       instant
	EndedAt         instant
	RedriveOf       *core.JobExecutionID // NULL except for redrives
	TaskID          *int64               // NULL if no task ran it
	ParentID        *core.JobExecutionID // NULL except for child jobs
	ParentCall      *core.StepExecutionID
	Gate            string
	LastMove        string // the last move, and the epoch in which it was made
	LastEpoch       int64
	ExclusiveKey    core.ExclusiveKey
	Confinement     string // JSON of a core.Confinement; empty: none
	LocalTimes      *bool  // NULL: launched before local times were of the job's time zone (rule D5)
}

type jobExecutionParam struct {
	JobExecutionID core.JobExecutionID `gorm:"primaryKey"`
	Name           string              `gorm:"primaryKey"`
	Type           core.ParameterType
	Value          string // canonical text of the type
	Identifying    bool
}

type stepExecution struct {
	ID             core.StepExecutionID `gorm:"primaryKey"`
	JobExecutionID core.JobExecutionID
	JobName        string
	Name           string
	Flow           string // with ordinal and element the visit: see flowVisit
	Ordinal        int64
	Element        string
	Status         core.Status
	StatusBefore   core.Status
	ExitCode       string
	ErrorText      string
	Counts         counterRow `gorm:"embedded"`
	Position       string
	Context        string
	Out            string
	Owner          string
	Epoch          int64
	StartedAt      instant
	EndedAt        instant
	BeforeCounts   string // the earlier attempts' counts, as JSON
	InHandCounts   string // the uncommitted part of the counters, as JSON
	// FirstID is the first of the attempts that this one continues: 0 for itself, NULL if it was
	// not recorded.
	FirstID *core.StepExecutionID
	Gate    string
	// Closed is true if the attempt's own goroutine recorded its end, after it had closed the
	// components; take-over and operators never set it (rule C15b).
	Closed    bool
	LastMove  string // the last move, and the epoch in which it was made
	LastEpoch int64

	ManagerID     *core.StepExecutionID // of a partition, else NULL
	BranchID      *core.StepExecutionID // of a step in a branch that a worker walks, else NULL
	LeaseUntil    instant               // of a partition that a worker has, else NULL
	AssignedCount int
	AssignedFrom  string // the worker that lost it
	OpenParts     int64
}

// counterRow has the counters of a step's row, and of its checkpoint's.
type counterRow struct {
	ReadCount        int64
	FilterCount      int64
	WriteCount       int64
	ReadSkipCount    int64
	ProcessSkipCount int64
	WriteSkipCount   int64
	CommitCount      int64
	RollbackCount    int64
}

// flowVisit is a row of the journal: a visit that has no step execution.
type flowVisit struct {
	JobExecutionID core.JobExecutionID `gorm:"primaryKey"`
	Flow           string              `gorm:"primaryKey"`
	Ordinal        int64               `gorm:"primaryKey"`
	Element        string
	Kind           ports.VisitKind
	Verdict        string
	Target         string
	CreatedAt      instant
}

// audit is one transition. It refers to executions without a foreign key, because it may outlive
// them.
type audit struct {
	ID              int64 `gorm:"primaryKey"`
	At              instant
	Act             string // the act, such as "launch"
	Actor           string // the owner that acted; '' if any process may
	JobExecutionID  core.JobExecutionID
	StepExecutionID core.StepExecutionID // 0 for a transition of the job execution
	FromStatus      core.Status          // '' for a new row
	ToStatus        core.Status
	Epoch           int64
	Detail          string
	// Verb is the act of a person, a client or a duty; '' marks a transition that is not an act
	// (rule OP4).
	Verb    string
	Person  string // the actor
	JobName string // of an act
}

// isParked reports whether the execution is active without an owner: it is parked, or a stop was
// requested while it was.
func (j *jobExecution) isParked() bool { return j.Owner == "" && !j.Status.IsOver() }

func (i *jobInstance) record() ports.JobInstance {
	return ports.JobInstance{ID: i.ID, JobName: i.JobName, Key: i.InstanceKey, BaseKey: i.BaseKey}
}

// record returns the record without parameters; it fails if a part of it is unreadable.
func (j *jobExecution) record() (core.JobExecution, error) {
	exec := j.readable(nil)
	return exec, exec.Unreadable
}

// readable returns the record without parameters and without unreadable parts; noParams is why a parameter is one.
func (j *jobExecution) readable(noParams error) core.JobExecution {
	context, noContext := core.ParseExecutionContext([]byte(j.Context))
	files, noFiles := decodeFiles(j.DefinitionFiles)
	confinement, noConfinement := decodeConfinement(j.Confinement)
	return core.JobExecution{
		Unreadable:  unreadable("job", int64(j.ID), noParams, noContext, noFiles, noConfinement),
		Confinement: confinement, FormerTimes: j.LocalTimes == nil, RedriveOf: orZero(j.RedriveOf), Task: orZero(j.TaskID), Parent: orZero(j.ParentID), ParentCall: orZero(j.ParentCall), Gate: j.Gate, Exclusive: j.ExclusiveKey,
		ID: j.ID, InstanceID: j.InstanceID, JobName: j.JobName,
		Status: j.Status, ExitCode: j.ExitCode, Error: j.ErrorText, Settles: settles(j.Status, j.LastMove),
		Definition: core.Definition{Hash: j.DefinitionHash, Text: j.DefinitionText, Path: j.DefinitionPath, Files: files}, Context: context,
		Owner: ports.ParseOwner(j.Owner), Epoch: j.Epoch, LeaseUntil: j.LeaseUntil.Time, StopRequested: j.StopRequested,
		Attempt: j.Attempt, Time: j.JobTime.Time, CreatedAt: j.CreatedAt.Time, StartedAt: j.StartedAt.Time, EndedAt: j.EndedAt.Time,
	}
}

// unreadable is an ErrUnreadable with the errors, or nil.
func unreadable(kind string, id int64, errs ...error) error {
	if err := inOneLine(errs); err != nil {
		return fmt.Errorf("%s execution %d: %w: %w", kind, id, ports.ErrUnreadable, err)
	}
	return nil
}

// inOneLine is errors.Join with one line.
func inOneLine(errs []error) (all error) {
	for _, err := range errs {
		switch {
		case all == nil:
			all = err
		case err != nil:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

func (j *jobExecution) located(params core.Parameters) core.Parameters {
	if j.DefinitionPath == "" {
		return params.In("")
	}
	return params.In(filepath.Dir(j.DefinitionPath))
}

// record fails if a part of it is unreadable.
func (s *stepExecution) record() (*core.StepExecution, error) {
	step := s.readable()
	return step, step.Unreadable
}

// readable returns the record without unreadable parts.
func (s *stepExecution) readable() *core.StepExecution {
	context, noContext := core.ParseExecutionContext([]byte(s.Context))
	out, noOut := decodeOut(s.Out)
	before, noBefore := decodeCounts(s.BeforeCounts)
	inHand, noInHand := decodeCounts(s.InHandCounts)
	var position item.Position
	if s.Position != "" {
		position = item.Position(s.Position)
	}
	return &core.StepExecution{
		Unreadable: unreadable("step", int64(s.ID), noContext, noOut, noBefore, noInHand),
		ID:         s.ID, First: s.first(), JobExecutionID: s.JobExecutionID, JobName: s.JobName, Name: s.Name,
		Status: s.Status, ExitCode: s.ExitCode, Error: s.ErrorText, Settles: settles(s.Status, s.LastMove),
		Visit:    core.Visit{Flow: s.Flow, Ordinal: s.Ordinal, Element: s.Element},
		Counters: s.Counts.counters(), Before: before, InHand: inHand, Gate: s.Gate, Position: position, Context: context, Out: out,
		Owner: ports.ParseOwner(s.Owner), Epoch: s.Epoch, StartedAt: s.StartedAt.Time, EndedAt: s.EndedAt.Time,
		Manager: orZero(s.ManagerID), Branch: orZero(s.BranchID), LeaseUntil: s.LeaseUntil.Time, Assigned: s.AssignedCount, OpenParts: s.OpenParts,
		AssignedFrom: s.assignedFrom(),
	}
}

func (s *stepExecution) assignedFrom() []core.Owner {
	var owners []core.Owner
	for _, text := range strings.Fields(s.AssignedFrom) {
		owners = append(owners, ports.ParseOwner(text))
	}
	return owners
}

// orZero returns the value of a column; NULL is zero.
func orZero[T any](column *T) (value T) {
	if column != nil {
		value = *column
	}
	return value
}

func (s *stepExecution) first() core.StepExecutionID {
	switch {
	case s.FirstID == nil:
		return 0
	case *s.FirstID == 0:
		return s.ID
	}
	return *s.FirstID
}

func (c *counterRow) counters() core.Counters {
	return core.Counters{
		Read: c.ReadCount, Filter: c.FilterCount, Write: c.WriteCount,
		ReadSkip: c.ReadSkipCount, ProcessSkip: c.ProcessSkipCount, WriteSkip: c.WriteSkipCount,
		Commit: c.CommitCount, Rollback: c.RollbackCount,
	}
}

// counterColumns and counterValues have the same order.
func counterColumns() []string {
	return []string{
		"read_count", "filter_count", "write_count",
		"read_skip_count", "process_skip_count", "write_skip_count",
		"commit_count", "rollback_count",
	}
}

func counterValues(c core.Counters) []any {
	return []any{c.Read, c.Filter, c.Write, c.ReadSkip, c.ProcessSkip, c.WriteSkip, c.Commit, c.Rollback}
}

// settles reports whether a checkpoint determines the outcome of an UNKNOWN execution.
func settles(s core.Status, lastMove string) bool {
	return s == core.StatusUnknown && lastMove == ports.MoveLoseCommit
}

// steps returns the records of the steps that the condition selects, in the order of their IDs.
func (s *store) steps(ctx context.Context, condition string, args ...any) ([]core.StepExecution, error) {
	records, err := s.readableSteps(ctx, condition, args...)
	for i := range records {
		if records[i].Unreadable != nil {
			return nil, records[i].Unreadable
		}
	}
	return records, err
}

// readableSteps is steps without unreadable parts.
func (s *store) readableSteps(ctx context.Context, condition string, args ...any) ([]core.StepExecution, error) {
	var rows []stepExecution
	if err := gormtx.Find(s.session(ctx).Where(condition, args...).Order("id"), &rows); err != nil {
		return nil, err
	}
	return stepRecords(rows), nil
}

func stepRecords(rows []stepExecution) []core.StepExecution {
	records := make([]core.StepExecution, len(rows))
	for i := range rows {
		records[i] = *rows[i].readable()
	}
	return records
}

type executionRow struct {
	Row    jobExecution `gorm:"embedded"`
	Params string       // as paramsColumn writes them
}

// paramsColumn is the column params of a query of executions: name|type|0 or 1|value| for each
// parameter, where 1 marks an identifying one. Names and values are escaped. Parsing JSON instead
// took an eighth of the CPU time of a list.
const paramsColumn = `(SELECT string_agg(` + escapedName + ` || '|' || p.type || CASE WHEN p.identifying THEN '|1|' ELSE '|0|' END || ` + escapedValue + ` || '|', '')
	FROM {job_execution_param} p WHERE p.job_execution_id = {job_execution}.id) AS params`

const (
	escapedName  = `replace(replace(p.name, '!', '!!'), '|', '!p')`
	escapedValue = `replace(replace(p.value, '!', '!!'), '|', '!p')`
)

// with returns the record with its parameters and without unreadable parts.
func (j *jobExecution) with(column string) core.JobExecution {
	const fields = 4
	rows := make([]jobExecutionParam, strings.Count(column, "|")/fields)
	rest := column
	for i := range rows {
		var name, kind, identifying, value string
		name, rest, _ = strings.Cut(rest, "|")
		kind, rest, _ = strings.Cut(rest, "|")
		identifying, rest, _ = strings.Cut(rest, "|")
		value, rest, _ = strings.Cut(rest, "|")
		rows[i] = jobExecutionParam{JobExecutionID: j.ID, Name: unescaped(name), Type: core.ParameterType(kind), Value: unescaped(value), Identifying: identifying == "1"}
	}
	params, err := parameters(rows)
	exec := j.readable(err)
	exec.Params = j.located(params)
	return exec
}

func unescaped(s string) string {
	if !strings.Contains(s, "!") {
		return s
	}
	return strings.NewReplacer("!!", "!", "!p", "|").Replace(s)
}

// parameters returns the readable ones, and the errors of the others.
func parameters(rows []jobExecutionParam) (core.Parameters, error) {
	list := make([]core.Parameter, 0, len(rows))
	var errs []error
	for _, row := range rows {
		value, err := core.ParseParameter(row.Type, row.Value)
		if err != nil {
			errs = append(errs, fmt.Errorf("stored parameter %s: %w", row.Name, err))
			continue
		}
		list = append(list, core.Parameter{Name: row.Name, Type: row.Type, Value: value, Identifying: row.Identifying})
	}
	made, err := core.NewParameters(list...)
	return made, inOneLine(append(errs, err))
}

func paramRows(id core.JobExecutionID, params core.Parameters) ([]jobExecutionParam, error) {
	rows := make([]jobExecutionParam, 0, params.Len())
	for _, p := range params.All() {
		text, err := p.Canonical()
		if err != nil {
			return nil, err
		}
		rows = append(rows, jobExecutionParam{JobExecutionID: id, Name: p.Name, Type: p.Type, Value: text, Identifying: p.Identifying})
	}
	return rows, nil
}
