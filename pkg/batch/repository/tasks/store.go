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
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// store has the database of the tasks, and what each of the types over it needs of it: statements,
// transactions, texts and the audit. It knows none of them.
type store struct {
	db      tx.Database
	prefix  string
	manager *tx.Manager
	gorm    *gorm.DB
	names   *strings.Replacer
	mask    func(text string) string // hides secrets in the stored end of an attempt
}

func newStore(db tx.Database, prefix string, mask func(text string) string) (*store, error) {
	base, err := gormtx.Open(db, gormtx.Options{History: true, QueryFields: true, Naming: schema.NamingStrategy{TablePrefix: prefix, SingularTable: true}})
	if err != nil {
		return nil, err
	}
	pairs := append(gormtx.Words(db.Dialect()), "{lock}", lockOn(db.Dialect(), "UPDATE"), "{characters}", "length", "{greatest}", "max")
	if db.Dialect() != tx.SQLite {
		pairs[len(pairs)-3], pairs[len(pairs)-1] = "char_length", "GREATEST"
	}
	for _, table := range []string{"task", "task_group", "task_attempt", "task_decision", "task_log", "task_audit", "task_after", "worker", "leader", "setting", "placement", "step_execution", "job_execution"} {
		pairs = append(pairs, "{"+table+"}", db.Dialect().Quote(prefix+table))
	}
	pairs = append(pairs, "{grace}", strings.NewReplacer(pairs...).Replace(grace))
	if mask == nil {
		mask = func(text string) string { return text }
	}
	return &store{db: db, prefix: prefix, manager: tx.NewManager(db), gorm: base, names: strings.NewReplacer(pairs...), mask: mask}, nil
}

// grace is the setting continuation_grace in microseconds.
const grace = "COALESCE((SELECT CAST(value AS bigint) FROM {setting} WHERE name = '" + taskports.ContinuationGrace + "'), 0) * 1000000"

// sql fills in the names of tables, {now}, {later} (now plus a ? in microseconds), {grace},
// {greatest} and {lock}, with which a SELECT locks its rows.
// lockOn locks the rows of a SELECT. SQLite has one writer.
func lockOn(d tx.Dialect, strength string) string {
	switch {
	case d == tx.SQLite:
		return ""
	case d == tx.MySQL && strength == "SHARE":
		return " LOCK IN SHARE MODE"
	}
	return " FOR " + strength
}

func (r *store) sql(text string) string { return r.names.Replace(text) }

// table is the name of the tasks' table; gorm would name it by the type of the row.
func (r *store) table() string { return r.prefix + "task" }

func (r *store) session(ctx context.Context) *gorm.DB {
	return gormtx.Session(ctx, r.gorm, r.db)
}

func (r *store) scan(ctx context.Context, dest any, text string, args ...any) error {
	return gormtx.Scan(r.session(ctx).Raw(r.sql(text), args...), dest)
}

func (r *store) exec(ctx context.Context, text string, args ...any) (int64, error) {
	done := r.session(ctx).Exec(r.sql(text), args...)
	return done.RowsAffected, done.Error
}

func (r *store) transact(ctx context.Context, f func(ctx context.Context) error) error {
	return gormtx.Transact(ctx, r.manager, r.attr(), f)
}

// attr requests READ COMMITTED explicitly, as the repository of jobs does.
func (r *store) attr() tx.Attr {
	if r.db.Dialect() == tx.Postgres {
		return tx.Attr{Isolation: sql.LevelReadCommitted}
	}
	return tx.Attr{}
}

func (r *store) later(column string, d interface{ Microseconds() int64 }) guard.Assignment {
	return guard.SetSQL(column, r.sql("{later}"), d.Microseconds())
}

func (r *store) now(column string) guard.Assignment { return guard.SetSQL(column, r.sql("{now}")) }

func (r *store) storable(text string) string { return storable(r.mask(text)) }

// audit notes an act of an operator, or of a process for another one.
func (r *store) audit(ctx context.Context, id task.ID, act, actor string, from, to task.State, epoch int64, detail string) error {
	verb, person := "", ""
	if isAct(act, actor) {
		verb, person = act, actor
	}
	_, err := r.exec(ctx, `INSERT INTO {task_audit} (at, task_id, act, actor, from_state, to_state, epoch, detail, verb, person)
		VALUES ({now}, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, act, actor, from, to, epoch, detail, verb, person)
	return err
}

func (r *store) note(ctx context.Context, verb, actor, detail string) error {
	return r.audit(ctx, 0, verb, actor, "", "", 0, detail)
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

func named(id task.ID, err error) error { return wrapped(err, "task %d", id) }

func wrapped(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
