package taskports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The names of settings in the database, which the leader reads while it works. They override
// configuration files.
const (
	// LogRetention is the number of days that log text stays in the database before it is moved to a
	// file in the folder of the settings' tasks.logs; 0 means for ever.
	LogRetention = "log_retention_days_db"
	// HistoryRetention is the number of days that finished executions, tasks, processed events and keys
	// of requests stay in the database before they are deleted; 0 means for ever.
	HistoryRetention = "history_retention_days"
	// AuditRetention is the number of days that acts and transitions stay in the audit; 0 means for
	// ever.
	AuditRetention = "audit_retention_days"
	// ReassignAfter is the number of seconds that work with a placement may stay assigned, but not
	// begun, to a worker that is gone or stopping.
	ReassignAfter = "reassign_after_seconds"
	// ContinuationGrace is the number of seconds after its lease that a task is left to a worker that
	// does not renew it, and continues it (rule L9a). Workers receive it with each heartbeat.
	ContinuationGrace = "continuation_grace"
)

// Setting is a value that processes share.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Unit is the unit of the value, and Effect describes the setting.
	Unit   string `json:"unit"`
	Effect string `json:"effect"`
	// Default means that the value was never set.
	Default   bool       `json:"default,omitempty"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
	UpdatedBy string     `json:"updated_by,omitempty"`
}

// Settings keeps the settings.
type Settings interface {
	// Settings returns all settings, by name, with defaults for those that were never set.
	Settings(ctx context.Context) ([]Setting, error)
	// Set changes one, in the name of actor, and notes it in the audit. core.Duplicate means that it
	// already has the value, and nothing is noted.
	Set(ctx context.Context, name, value, actor string) (core.Answer, error)
}

// maxSetting bounds the values, so that no time overflows.
const maxSetting = 100_000

// ErrSetting means that a setting, or its value, is not allowed.
var ErrSetting = errors.New("setting refused")

// DefaultSettings are the settings with their defaults.
func DefaultSettings() []Setting {
	return []Setting{
		{Name: AuditRetention, Value: "0", Default: true, Unit: "days", Effect: "the leader deletes older acts and transitions from the audit; 0 means never"},
		{Name: ContinuationGrace, Value: "0", Default: true, Unit: "seconds", Effect: "a disconnected worker keeps a task this long after its lease, and continues it"},
		{Name: HistoryRetention, Value: "0", Default: true, Unit: "days", Effect: "the leader deletes older tasks and groups that are over; 0 means never"},
		{Name: LogRetention, Value: "0", Default: true, Unit: "days", Effect: "the leader moves older log text to the folder tasks.logs; 0 means never"},
		{Name: ReassignAfter, Value: "30", Default: true, Unit: "seconds", Effect: "a task stays assigned this long to a worker that is gone before it started"},
	}
}

// CheckSetting refuses unknown names, and values that are not numbers from 0 to 100000, with
// an ErrSetting.
func CheckSetting(name, value string) error {
	all := DefaultSettings()
	if !slices.ContainsFunc(all, func(s Setting) bool { return s.Name == name }) {
		names := make([]string, len(all))
		for i, s := range all {
			names[i] = s.Name
		}
		return fmt.Errorf("%w: there is no %q (known: %q)", ErrSetting, name, names)
	}
	if n, err := strconv.Atoi(value); err != nil || n < 0 || n > maxSetting {
		return fmt.Errorf("%w: the value of %s is %q, but must be a number from 0 to %d", ErrSetting, name, value, maxSetting)
	}
	return nil
}

// SettingIn returns the number of a setting in a list.
func SettingIn(list []Setting, name string) int {
	for _, s := range list {
		if s.Name == name {
			n, _ := strconv.Atoi(s.Value) //nolint:errcheck // it was checked when it was set
			return n
		}
	}
	return 0
}

// Notes records acts on tasks, in the transaction of ctx.
type Notes interface {
	Note(ctx context.Context, verb, actor, detail string) error
}

// LogStore stores log text that is moved out of the database.
type LogStore interface {
	// Put stores the text under a name, and returns the reference for Get. The text is on disk when Put
	// returns. The same text may be put again.
	Put(ctx context.Context, name, text string) (ref string, err error)
	Get(ctx context.Context, ref string) (string, error)
}

// Logs keeps log text.
type Logs interface {
	// MoveLogs moves the texts of at most limit logs that are older than age to the store.
	MoveLogs(ctx context.Context, to LogStore, age time.Duration, limit int) (int, error)
}

// Purges deletes finished work.
type Purges interface {
	// PurgeTasks deletes at most limit groups with their tasks, attempts, decisions and log text, if
	// every task ended longer ago than age and no existing step execution submitted the group. It notes
	// each in the audit, and returns their number.
	PurgeTasks(ctx context.Context, age time.Duration, limit int, actor string) (int, error)
}
