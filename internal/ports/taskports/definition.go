package taskports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Definition is a job registered with a server, started by name and by its schedule.
type Definition struct {
	// ID stays when the files change, so a scheduled time is one run in any version.
	ID   int64
	Name string
	// Files are the job file and the files it names; their hash is the version.
	Files    core.Definition
	Schedule *Schedule
	Budget   task.Budget
	Enabled  bool
	// ScheduledUntil is the instant up to which times are decided; it restarts when the schedule
	// changes or is enabled.
	ScheduledUntil time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	UpdatedBy      string // registered, enabled or disabled it last
}

// Schedule is a job's schedule, in the words of its file.
type Schedule struct {
	Cron     string `json:"cron"`
	Timezone string `json:"timezone"`
	CatchUp  string `json:"catch_up"`
	Overlap  string `json:"overlap"`
	// Calendar has the business days; nil means all days. WhenClosed is skip or next.
	Calendar   *calendar.Days `json:"calendar,omitempty"`
	WhenClosed string         `json:"when_closed,omitempty"`
}

// Registration is the result of registering a definition.
type Registration struct {
	Definition Definition
	Before     string
	Changed    bool
}

// DefinitionFilter selects definitions; zero fields select all.
type DefinitionFilter struct {
	Scheduled bool
}

// Definitions stores the registered definitions.
type Definitions interface {
	// Register stores the definition under its name; a new name is enabled. Of concurrent calls the
	// last one stays.
	Register(ctx context.Context, d Definition, actor string) (Registration, error)
	// Definition returns one with its files, or core.ErrNotFound.
	Definition(ctx context.Context, name string) (Definition, error)
	// Definitions lists them by name, without file texts.
	Definitions(ctx context.Context, filter DefinitionFilter) ([]Definition, error)
	// EnableDefinition switches the schedule, and reports a change; core.ErrNotFound for an unknown
	// name.
	EnableDefinition(ctx context.Context, name string, enabled bool, actor string) (Definition, bool, error)
	// Unregister deletes a definition, or core.ErrNotFound; the job's history stays.
	Unregister(ctx context.Context, name, actor string) error
	// Advance moves ScheduledUntil in the transaction that submits the runs. false: disabled,
	// another version, or advanced by another process; then nothing may be submitted. note lists
	// the times left out.
	Advance(ctx context.Context, d Definition, until time.Time, note string) (bool, error)
	Now(ctx context.Context) (time.Time, error)
}
