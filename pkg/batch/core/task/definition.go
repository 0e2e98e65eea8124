package task

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/calendar"
)

// Definition is a job that is registered with a server: it is started by its name from the
// files that are stored here, and at the times of its schedule.
type Definition struct {
	// ID is that of the name: it stays when the files change, so that a scheduled time is
	// one run whatever version it has.
	ID   int64
	Name string
	// Files are the job file and the files that it names. Their hash is the version.
	Files core.Definition
	// Schedule is nil where the files have none.
	Schedule *Schedule
	Budget   Budget
	// Enabled says that the schedule is heeded.
	Enabled bool
	// ScheduledUntil is the instant up to which scheduled times are decided: submitted or
	// left out. It begins anew when the times of the schedule change, or it is enabled.
	ScheduledUntil time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	UpdatedBy      string // who registered, enabled or disabled it last
}

// Schedule says when a job is due, in the words of its file; package schedule reads them.
type Schedule struct {
	Cron     string `json:"cron"`
	Timezone string `json:"timezone"`
	CatchUp  string `json:"catch_up"`
	Overlap  string `json:"overlap"`
	// Calendar has the business days on which the job is due, and WhenClosed says what becomes of
	// a time on another day: skip or next. nil: the job is due on all days.
	Calendar   *calendar.Days `json:"calendar,omitempty"`
	WhenClosed string         `json:"when_closed,omitempty"`
}

// Registration is what became of a definition.
type Registration struct {
	Definition Definition
	// Before is the version that it replaced; "": there was none.
	Before string
	// Changed is false where it was registered exactly so before.
	Changed bool
}

// DefinitionFilter selects definitions; zero fields select all.
type DefinitionFilter struct {
	// Scheduled selects those that are enabled and have a schedule.
	Scheduled bool
}

// Definitions keeps what is registered.
type Definitions interface {
	// Register stores the files, the schedule and the budget under the name. A new name is
	// enabled. Of several at once the last one stays.
	Register(ctx context.Context, d Definition, actor string) (Registration, error)
	// Definition returns one with its files; core.ErrNotFound if there is none.
	Definition(ctx context.Context, name string) (Definition, error)
	// Definitions lists them by name, without the texts of their files.
	Definitions(ctx context.Context, filter DefinitionFilter) ([]Definition, error)
	// EnableDefinition changes whether the schedule is heeded, and reports whether that was
	// another way before. core.ErrNotFound if there is none of that name.
	EnableDefinition(ctx context.Context, name string, enabled bool, actor string) (Definition, bool, error)
	// Unregister deletes the definition of a name; core.ErrNotFound if there is none. The history of
	// the job stays.
	Unregister(ctx context.Context, name, actor string) error
	// Advance moves ScheduledUntil, in the transaction that submits the runs up to then. It is
	// false, and changes nothing, where the definition is disabled, has another version, or
	// has been advanced by another process: nothing may be submitted then. note is for the
	// audit: what was left out; "": nothing was.
	Advance(ctx context.Context, d Definition, until time.Time, note string) (bool, error)
	// Now is the clock of the database.
	Now(ctx context.Context) (time.Time, error)
}
