package tasks

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Repository is a taskports.Repository. It is safe for concurrent use.
type Repository struct {
	db      tx.Database
	prefix  string
	manager *tx.Manager
	gorm    *gorm.DB
	names   *strings.Replacer
	tasks   *guard.Table[task.State]
	store   taskports.LogStore // if nil, moved log text is not found here
	waiters Waiters            // if nil, no step waits for a group
	// mask hides secrets in the stored end of an attempt.
	mask func(text string) string
}

var _ taskports.Repository = (*Repository)(nil)

// New returns the tasks of db, in tables with names that begin with prefix. It does no I/O.
// observer receives every transition and its answer, and may be nil.
func New(db tx.Database, prefix string, observer core.Observer) (*Repository, error) {
	base, err := gormtx.Open(db, gormtx.Options{QueryFields: true, Naming: schema.NamingStrategy{TablePrefix: prefix, SingularTable: true}})
	if err != nil {
		return nil, err
	}
	pairs := []string{"{now}", gormtx.Now(db.Dialect()), "{later}", gormtx.Later(db.Dialect()), "{lock}", "", "{greatest}", "max"}
	if db.Dialect() == tx.Postgres {
		pairs[5], pairs[7] = " FOR UPDATE", "GREATEST"
	}
	for _, table := range []string{"task", "task_group", "task_attempt", "task_decision", "task_log", "task_audit", "task_after", "worker", "leader", "setting", "placement", "step_execution", "job_execution"} {
		pairs = append(pairs, "{"+table+"}", db.Dialect().Quote(prefix+table))
	}
	pairs = append(pairs, "{grace}", strings.NewReplacer(pairs...).Replace(grace))
	return &Repository{
		db: db, prefix: prefix, manager: tx.NewManager(db), gorm: base, names: strings.NewReplacer(pairs...),
		tasks: guard.NewTable(db, prefix+"task", taskports.Machine(), observer, guard.Strict(), guard.Wait(0)),
		mask:  func(text string) string { return text },
	}, nil
}

// Masking returns the same tasks, and applies mask to the stored ends of attempts: outcomes,
// reasons and log text.
func (r *Repository) Masking(mask func(text string) string) *Repository {
	own := *r
	own.mask = mask
	return &own
}

func (r *Repository) storable(text string) string { return storable(r.mask(text)) }

// grace is the setting continuation_grace in microseconds.
const grace = "COALESCE((SELECT CAST(value AS bigint) FROM {setting} WHERE name = '" + taskports.ContinuationGrace + "'), 0) * 1000000"

// sql fills in the names of tables, {now}, {later} (now plus a ? in microseconds), {grace},
// {greatest} and {lock}, with which a SELECT locks its rows.
func (r *Repository) sql(text string) string { return r.names.Replace(text) }

// table is the name of the tasks' table; gorm would name it by the type of the row.
func (r *Repository) table() string { return r.prefix + "task" }

func (r *Repository) session(ctx context.Context) *gorm.DB {
	return gormtx.Session(ctx, r.gorm, r.db)
}

func (r *Repository) scan(ctx context.Context, dest any, text string, args ...any) error {
	return gormtx.Scan(r.session(ctx).Raw(r.sql(text), args...), dest)
}

func (r *Repository) exec(ctx context.Context, text string, args ...any) (int64, error) {
	done := r.session(ctx).Exec(r.sql(text), args...)
	return done.RowsAffected, done.Error
}

func (r *Repository) transact(ctx context.Context, f func(ctx context.Context) error) error {
	return r.manager.Do(ctx, r.attr(), f)
}

// attr requests READ COMMITTED explicitly, as the repository of jobs does.
func (r *Repository) attr() tx.Attr {
	if r.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}

func (r *Repository) later(column string, d interface{ Microseconds() int64 }) guard.Assignment {
	return guard.SetSQL(column, r.sql("{later}"), d.Microseconds())
}

func (r *Repository) now(column string) guard.Assignment { return guard.SetSQL(column, r.sql("{now}")) }

func ownedBy(worker string) guard.Condition {
	return guard.Condition{SQL: "worker = ?", Args: []any{worker}, Reason: "another worker has it", Owner: true}
}

// audit notes an act of an operator, or of a process for another one.
func (r *Repository) audit(ctx context.Context, id task.ID, act, actor string, from, to task.State, epoch int64, detail string) error {
	verb, person := "", ""
	if isAct(act, actor) {
		verb, person = act, actor
	}
	_, err := r.exec(ctx, `INSERT INTO {task_audit} (at, task_id, act, actor, from_state, to_state, epoch, detail, verb, person)
		VALUES ({now}, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, act, actor, from, to, epoch, detail, verb, person)
	return err
}

// isAct reports whether the actor is a person, a client or a duty, and not a process for another
// one (rule OP4). The transitions of a canceled group's tasks are not acts: the group has its own
// act.
func isAct(act, actor string) bool {
	switch act {
	case taskports.MoveCancel, taskports.MoveRerun:
		return actor != "reaper" && actor != "leader"
	case ports.VerbSet, ports.VerbPurge, ports.VerbSubmit, ports.VerbCancelGroup:
		return true
	}
	return false
}

// Note implements taskports.Notes.
func (r *Repository) Note(ctx context.Context, verb, actor, detail string) error {
	return r.audit(ctx, 0, verb, actor, "", "", 0, detail)
}

func named(id any, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("task %v: %w", id, err)
}
