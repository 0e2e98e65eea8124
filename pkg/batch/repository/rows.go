package repository

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Type and field names are table and column names. A missing text is '', a time not come is NULL.

type jobInstance struct {
	ID          core.JobInstanceID `gorm:"primaryKey"`
	JobName     string
	InstanceKey string
	BaseKey     string // empty for a redrive
	Attempts    int64
	Backfilled  bool
	LocalTimes  *bool // NULL: before rule D5
	CreatedAt   instant
}

type jobExecution struct {
	ID              core.JobExecutionID `gorm:"primaryKey"`
	InstanceID      core.JobInstanceID
	JobName         string
	Attempt         int
	Status          core.Status
	StatusBefore    core.Status
	ExitCode        string
	ErrorText       string
	DefinitionHash  string
	DefinitionText  string
	DefinitionPath  string
	DefinitionFiles string // JSON
	Context         string
	Owner           string
	Epoch           int64
	Active          *int64 // 1 while it runs, else NULL: unique with the instance
	StopRequested   bool
	StepCount       int64 // started; under StartStep's guard
	LeaseUntil      instant
	JobTime         instant // of the first launch
	CreatedAt       instant
	StartedAt       instant
	EndedAt         instant
	RedriveOf       *core.JobExecutionID // else NULL
	TaskID          *int64               // else NULL
	ParentID        *core.JobExecutionID // else NULL
	ParentCall      *core.StepExecutionID
	Gate            string
	LastMove        string // with its epoch
	LastEpoch       int64
	ExclusiveKey    core.ExclusiveKey
	Confinement     string // JSON
	LocalTimes      *bool  // NULL: before rule D5
}

type jobExecutionParam struct {
	JobExecutionID core.JobExecutionID `gorm:"primaryKey"`
	Name           string              `gorm:"primaryKey"`
	Type           core.ParameterType
	Value          string // canonical text of the type
	Identifying    bool
}

type stepExecution struct {
	ID               core.StepExecutionID `gorm:"primaryKey"`
	JobExecutionID   core.JobExecutionID
	JobName          string
	Name             string
	Flow             string // with ordinal and element the visit
	Ordinal          int64
	Element          string
	Status           core.Status
	StatusBefore     core.Status
	ExitCode         string
	ErrorText        string
	ReadCount        int64
	FilterCount      int64
	WriteCount       int64
	ReadSkipCount    int64
	ProcessSkipCount int64
	WriteSkipCount   int64
	CommitCount      int64
	RollbackCount    int64
	Position         string
	Context          string
	Out              string
	Owner            string
	Epoch            int64
	StartedAt        instant
	EndedAt          instant
	BeforeCounts     string // earlier attempts', JSON
	InHandCounts     string // uncommitted counts, JSON
	// FirstID: 0 for itself, NULL if not recorded.
	FirstID *core.StepExecutionID
	Gate    string
	// Closed: its goroutine recorded the end after closing components; never take-over or operators (rule
	// C15b).
	Closed    bool
	LastMove  string // with its epoch
	LastEpoch int64

	ManagerID     *core.StepExecutionID // of a partition, else NULL
	BranchID      *core.StepExecutionID // in a branch on a worker, else NULL
	LeaseUntil    instant               // of a worker's partition, else NULL
	AssignedCount int
	AssignedFrom  string
	OpenParts     int64
}

// flowVisit is a visit without a step execution.
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

// audit is a transition; no foreign key, as it may outlive executions.
type audit struct {
	ID              int64 `gorm:"primaryKey"`
	At              instant
	Act             string
	Actor           string // '' if any process may
	JobExecutionID  core.JobExecutionID
	StepExecutionID core.StepExecutionID // 0: of the job
	FromStatus      core.Status          // '' for a new row
	ToStatus        core.Status
	Epoch           int64
	Detail          string
	// Verb is an act; '' is a transition that is not one (rule OP4).
	Verb    string
	Person  string
	JobName string
}

// isParked: active without an owner.
func (j *jobExecution) isParked() bool { return j.Owner == "" && !j.Status.IsOver() }

func (i *jobInstance) record() core.JobInstance {
	return core.JobInstance{ID: i.ID, JobName: i.JobName, Key: i.InstanceKey, BaseKey: i.BaseKey}
}

// Without parameters.
func (j *jobExecution) record() (core.JobExecution, error) {
	context, err := core.ParseExecutionContext([]byte(j.Context))
	if err != nil {
		return core.JobExecution{}, fmt.Errorf("job execution %d: %w", j.ID, err)
	}
	files, err := decodeFiles(j.DefinitionFiles)
	if err != nil {
		return core.JobExecution{}, fmt.Errorf("job execution %d: %w", j.ID, err)
	}
	var redriveOf, parent core.JobExecutionID
	if j.ParentID != nil {
		parent = *j.ParentID
	}
	var call core.StepExecutionID
	if j.ParentCall != nil {
		call = *j.ParentCall
	}
	if j.RedriveOf != nil {
		redriveOf = *j.RedriveOf
	}
	var task int64
	if j.TaskID != nil {
		task = *j.TaskID
	}
	confinement, err := core.DecodeConfinement(j.Confinement)
	if err != nil {
		return core.JobExecution{}, fmt.Errorf("job execution %d: %w", j.ID, err)
	}
	return core.JobExecution{
		Confinement: confinement, FormerTimes: j.LocalTimes == nil, RedriveOf: redriveOf, Task: task, Parent: parent, ParentCall: call, Gate: j.Gate, Exclusive: j.ExclusiveKey,
		ID: j.ID, InstanceID: j.InstanceID, JobName: j.JobName,
		Status: j.Status, ExitCode: j.ExitCode, Error: j.ErrorText, Settles: settles(j.Status, j.LastMove),
		Definition: core.Definition{Hash: j.DefinitionHash, Text: j.DefinitionText, Path: j.DefinitionPath, Files: files}, Context: context,
		Owner: core.ParseOwner(j.Owner), Epoch: j.Epoch, LeaseUntil: j.LeaseUntil.Time, StopRequested: j.StopRequested,
		Attempt: j.Attempt, Time: j.JobTime.Time, CreatedAt: j.CreatedAt.Time, StartedAt: j.StartedAt.Time, EndedAt: j.EndedAt.Time,
	}, nil
}

func (j *jobExecution) located(params core.Parameters) core.Parameters {
	if j.DefinitionPath == "" {
		return params.In("")
	}
	return params.In(filepath.Dir(j.DefinitionPath))
}

func (s *stepExecution) record() (*core.StepExecution, error) {
	context, err := core.ParseExecutionContext([]byte(s.Context))
	if err != nil {
		return nil, fmt.Errorf("step execution %d: %w", s.ID, err)
	}
	out, err := decodeOut(s.Out)
	if err != nil {
		return nil, fmt.Errorf("step execution %d: %w", s.ID, err)
	}
	before, err := decodeCounts(s.BeforeCounts)
	if err != nil {
		return nil, fmt.Errorf("step execution %d: %w", s.ID, err)
	}
	inHand, err := decodeCounts(s.InHandCounts)
	if err != nil {
		return nil, fmt.Errorf("step execution %d: %w", s.ID, err)
	}
	var position item.Position
	if s.Position != "" {
		position = item.Position(s.Position)
	}
	return &core.StepExecution{
		ID: s.ID, First: s.first(), JobExecutionID: s.JobExecutionID, JobName: s.JobName, Name: s.Name,
		Status: s.Status, ExitCode: s.ExitCode, Error: s.ErrorText, Settles: settles(s.Status, s.LastMove),
		Visit:    core.Visit{Flow: s.Flow, Ordinal: s.Ordinal, Element: s.Element},
		Counters: s.counters(), Before: before, InHand: inHand, Gate: s.Gate, Position: position, Context: context, Out: out,
		Owner: core.ParseOwner(s.Owner), Epoch: s.Epoch, StartedAt: s.StartedAt.Time, EndedAt: s.EndedAt.Time,
		Manager: idOf(s.ManagerID), Branch: idOf(s.BranchID), LeaseUntil: s.LeaseUntil.Time, Assigned: s.AssignedCount, OpenParts: s.OpenParts,
		AssignedFrom: s.assignedFrom(),
	}, nil
}

func (s *stepExecution) assignedFrom() []core.Owner {
	var owners []core.Owner
	for _, text := range strings.Fields(s.AssignedFrom) {
		owners = append(owners, core.ParseOwner(text))
	}
	return owners
}

func idOf(column *core.StepExecutionID) core.StepExecutionID {
	if column == nil {
		return 0
	}
	return *column
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

func (s *stepExecution) counters() core.Counters {
	return core.Counters{
		Read: s.ReadCount, Filter: s.FilterCount, Write: s.WriteCount,
		ReadSkip: s.ReadSkipCount, ProcessSkip: s.ProcessSkipCount, WriteSkip: s.WriteSkipCount,
		Commit: s.CommitCount, Rollback: s.RollbackCount,
	}
}

// Both have the same order.
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

func settles(s core.Status, lastMove string) bool {
	return s == core.StatusUnknown && lastMove == ports.MoveLoseCommit
}
