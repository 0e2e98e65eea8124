package language

import (
	"database/sql"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Attr are the attributes of the transaction; a nil one has none.
func (t *Transaction) Attr() tx.Attr {
	if t == nil {
		return tx.Attr{}
	}
	return tx.Attr{
		Propagation: tx.Propagation(t.Propagation), Isolation: isolation(t.Isolation), ReadOnly: t.ReadOnly, Timeout: ValueOr0(t.Timeout),
	}
}

func isolation(name string) sql.IsolationLevel {
	switch name {
	case "read_uncommitted":
		return sql.LevelReadUncommitted
	case "read_committed":
		return sql.LevelReadCommitted
	case "repeatable_read":
		return sql.LevelRepeatableRead
	case "serializable":
		return sql.LevelSerializable
	}
	return sql.LevelDefault
}

// Limits are the limits that the file sets; a nil budget sets none.
func (m *Budget) Limits() task.Budget {
	if m == nil {
		return task.Budget{}
	}
	return task.Budget{
		MaxAttempts: ValueOr0(m.MaxAttempts), MaxTotalAttempts: ValueOr0(m.MaxTotalAttempts),
		Deadline: ValueOr0(m.Deadline), MaxNoProgress: ValueOr0(m.MaxNoProgress),
	}
}

// ValueOr0 is the value of an optional key.
func ValueOr0[T any](p *T) (x T) {
	if p != nil {
		x = *p
	}
	return x
}
