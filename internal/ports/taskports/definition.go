package taskports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Definition is a job that is registered with a server: it starts by its name from the files stored
// here, and at the times of its schedule.
type Definition struct {
	// ID belongs to the name: it stays when the files change, so a scheduled time is one run in any
	// version.
	ID   int64
	Name string
	// Files are the job file and the files that it names. Their hash is the version.
	Files core.Definition
	// Schedule is nil if the files have none.
	Schedule *Schedule
	Budget   task.Budget
	// Enabled means that the schedule is active.
	Enabled bool
	// ScheduledUntil is the instant up to which scheduled times are decided: submitted or left out. It
	// restarts when the times of the schedule change, or it is enabled.
	ScheduledUntil time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	UpdatedBy      string // registered, enabled or disabled it last
	// Unreadable names stored data that are left out, since they cannot be parsed: only in lists.
	Unreadable error
}

// Schedule is the schedule of a job, in the words of its file; package schedule parses them.
type Schedule struct {
	Cron     string `json:"cron"`
	Timezone string `json:"timezone"`
	CatchUp  string `json:"catch_up"`
	Overlap  string `json:"overlap"`
	// Calendar has the business days on which the job is due, and WhenClosed decides about a time on
	// another day: skip or next. nil means that the job is due on all days.
	Calendar   *calendar.Days `json:"calendar,omitempty"`
	WhenClosed string         `json:"when_closed,omitempty"`
}

// Registration is the result of registering a definition.
type Registration struct {
	Definition Definition
	// Before is the version that it replaced, or "".
	Before string
	// Changed is false if the same definition was registered before.
	Changed bool
}

// DefinitionFilter selects definitions; zero fields select all.
type DefinitionFilter struct {
	// Scheduled selects definitions that are enabled and have a schedule.
	Scheduled bool
}

// Definitions stores the registered definitions.
type Definitions interface {
	// Register stores the files, the schedule and the budget under the name. A new name is enabled. Of
	// concurrent calls the last one stays.
	Register(ctx context.Context, d Definition, actor string) (Registration, error)
	// Definition returns one with its files; core.ErrNotFound if there is none.
	Definition(ctx context.Context, name string) (Definition, error)
	// Lock is Definition, and holds it until the transaction of ctx ends: no other process submits a run of its
	// schedule, or changes it.
	Lock(ctx context.Context, name string) (Definition, error)
	// NoteRun notes in the audit that actor submitted a run of its schedule by hand.
	NoteRun(ctx context.Context, name, actor, detail string) error
	// Definitions lists them by name, without the texts of their files.
	Definitions(ctx context.Context, filter DefinitionFilter) ([]Definition, error)
	// EnableDefinition switches the schedule on or off, and reports whether that changed anything. The
	// error is core.ErrNotFound for an unknown name.
	EnableDefinition(ctx context.Context, name string, enabled bool, actor string) (Definition, bool, error)
	// Unregister deletes the definition of a name; core.ErrNotFound if there is none. The history of
	// the job stays.
	Unregister(ctx context.Context, name, actor string) error
	// Advance moves ScheduledUntil, in the transaction that submits the runs up to then. It returns
	// false and changes nothing if the definition is disabled, has another version, or was advanced by
	// another process: nothing may be submitted then. note lists the times left out, for the audit; ""
	// means none.
	Advance(ctx context.Context, d Definition, until time.Time, note string) (bool, error)
	// Now returns the clock of the database.
	Now(ctx context.Context) (time.Time, error)
}
