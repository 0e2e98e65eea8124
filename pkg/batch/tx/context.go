package tx

import (
	"context"
	"fmt"
)

// From returns the current transaction of the database, if there is one that is not suspended.
func From(ctx context.Context, database string) (Tx, bool) {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok || s.suspended {
		return nil, false
	}
	return s, true
}

// ConnOf returns the connection for work on the database: the current transaction's, else the
// database's own.
func ConnOf(ctx context.Context, db Database) Conn {
	if t, ok := From(ctx, db.Name()); ok {
		return t.Conn()
	}
	return db.Conn()
}

// AtEnd calls f when the transaction of the database in ctx has ended: with true once the outermost one
// is committed, with false if it, or f's savepoint, is rolled back, or if the outcome of the COMMIT is
// unknown. Without a transaction it calls f(true) at once.
//
// Use it for reports of database changes to others: a change that is rolled back has not happened. f
// must not use the transaction.
func AtEnd(ctx context.Context, database string, f func(committed bool)) {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok || s.suspended || s.ended.Load() {
		f(true)
		return
	}
	s.atEnd.add(f)
}

type runningKey struct{}

// Running returns a context for [Conn.Raw] that names the statement its f runs. Without Running, Raw
// assumes that f may have ended the transaction (rule T8a) or changed settings of the session (rule
// T8b), and checks or undoes that at a cost.
func Running(ctx context.Context, statement string) context.Context {
	return context.WithValue(ctx, runningKey{}, statement)
}

// RunningIn returns the statement that ctx names, or "".
func RunningIn(ctx context.Context) string {
	statement, _ := ctx.Value(runningKey{}).(string) //nolint:errcheck // absent is ""
	return statement
}

// WriterHeld reports whether ctx carries a writing transaction of the database, suspended or not: on a
// database with one writer any other write would wait for the calling goroutine itself.
func WriterHeld(ctx context.Context, database string) bool {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	return ok && s.writing()
}

// Outside returns a context for work outside the transaction of the database in ctx, like
// NOT_SUPPORTED, that may still write. ok is false if such work would wait for the calling goroutine
// itself: the database has one writer, and ctx holds it. Then the context is ctx itself.
func Outside(ctx context.Context, database string) (outside context.Context, ok bool) {
	s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
	switch {
	case s == nil:
		return ctx, true
	case s.singleWriter && s.writing():
		return ctx, false
	case s.suspended:
		return ctx, true
	}
	return context.WithValue(ctx, key{nameOr(database)}, s.suspend()), true
}

// Apart returns a context for work that has transactions of its own, may outlive the owner of ctx, and
// is not ended with it by an [Aborter]. It is refused in a transaction of one of the databases
// (ErrTransaction), and if it would wait for a suspended one, as the database has one writer
// (ErrSingleWriter).
func Apart(ctx context.Context, databases []string) (context.Context, error) {
	for _, database := range databases {
		s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
		switch {
		case s == nil:
			continue
		case !s.suspended && !s.hasEnded():
			return nil, fmt.Errorf("database %s: %w", nameOr(database), ErrTransaction)
		case s.singleWriter && s.writing():
			return nil, fmt.Errorf("database %s: %w", nameOr(database), ErrSingleWriter)
		}
		ctx = context.WithValue(ctx, key{nameOr(database)}, &scope{suspended: true, singleWriter: s.singleWriter})
	}
	return context.WithValue(ctx, aborterKey{}, (*Aborter)(nil)), nil
}

// Held returns how many connections of the pool the caller keeps: the physical transactions of the
// database in ctx, including suspended ones, and the connections that the step of ctx keeps in addition
// (Hold).
func Held(ctx context.Context, database string) int {
	s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
	n := holdingsOf(ctx).of(nameOr(database))
	for ; s != nil; s = s.outer {
		// A savepoint shares the counter of its transaction.
		if !s.suspended && !s.ended.Load() && (s.outer == nil || s.savepoints != s.outer.savepoints) {
			n++
		}
	}
	return n
}
