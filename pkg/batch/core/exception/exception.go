// Package exception classifies errors for the engine: whether the work may be retried (retryable),
// whether the item may be left out (skippable), or whether the step must fail (fatal).
//
// An error classifies itself through [BatchError], or through any type in its chain with the methods of
// [Classifier]. Wrapping with %w and errors.Join keep the classification; message text is never used.
//
// It imports the standard library only.
package exception

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Class names the kind of an error, as in the job file's `retry.errors` and `skip.errors`.
type Class string

// The classes of the framework's own errors.
const (
	// ClassNone leaves the kind of the error open.
	ClassNone Class = ""
	// ClassInvalidItem is an item that does not fit its declared type or rules.
	ClassInvalidItem Class = "invalid_item"
	// ClassParse is an invalid item with unreadable text.
	ClassParse Class = "parse"
	// ClassValidate is an invalid item that broke a rule of a validate processor.
	ClassValidate Class = "validate"
	// ClassExpression is an invalid item on which an expression failed.
	ClassExpression Class = "expression"
)

// Classifier is the engine's interface to an error. [BatchError] implements it; an application's own
// error types may too.
type Classifier interface {
	IsRetryable() bool
	IsSkippable() bool
}

// BatchError is an error that classifies itself for retry and skip. The zero flags mean fatal: neither
// retried nor skipped.
type BatchError struct {
	// Op is the failed operation, such as "csv: read"; it may be empty.
	Op string
	// Class is the kind of the error; it may be empty.
	Class Class
	// Err is the cause.
	Err error

	Retryable bool
	Skippable bool
}

// Error returns "op: cause".
func (e *BatchError) Error() string {
	switch {
	case e.Op == "" && e.Err == nil:
		return "batch error"
	case e.Op == "":
		return e.Err.Error()
	case e.Err == nil:
		return e.Op
	}
	return e.Op + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *BatchError) Unwrap() error { return e.Err }

// IsRetryable reports whether a retry of the same work may succeed.
func (e *BatchError) IsRetryable() bool { return e.Retryable }

// IsSkippable reports whether the item may be left out and the step may continue.
func (e *BatchError) IsSkippable() bool { return e.Skippable }

// Retryable marks err as worth another attempt, such as a network error.
func Retryable(op string, err error) error {
	return &BatchError{Op: op, Err: err, Retryable: true}
}

// Skippable marks err as the fault of one item, such as a malformed line.
func Skippable(op string, err error) error {
	return &BatchError{Op: op, Err: err, Skippable: true}
}

// InvalidItem marks err as an item that does not fit: skippable, of the given
// class (parse, validate, expression, or invalid_item itself).
func InvalidItem(op string, class Class, err error) error {
	return &BatchError{Op: op, Class: class, Err: err, Skippable: true}
}

// Fatal marks err as one that ends the step, whatever is configured.
func Fatal(op string, err error) error {
	return &BatchError{Op: op, Err: err}
}

// IsRetryable reports whether the first classifier in err's chain is retryable. The end of the context
// never is.
func IsRetryable(err error) bool {
	c, ok := classifier(err)
	return ok && c.IsRetryable()
}

// IsSkippable reports whether the first classifier in err's chain is skippable. The end of the context
// never is.
func IsSkippable(err error) bool {
	c, ok := classifier(err)
	return ok && c.IsSkippable()
}

// ClassOf returns the class of the outermost classified BatchError in err's chain.
func ClassOf(err error) Class {
	for rest := err; rest != nil; {
		var be *BatchError
		if !errors.As(rest, &be) {
			return ClassNone
		}
		if be.Class != ClassNone {
			return be.Class
		}
		rest = be.Err
	}
	return ClassNone
}

func classifier(err error) (Classifier, bool) {
	if err == nil || errors.Is(err, context.Canceled) || isDeadline(err) {
		return nil, false
	}
	var c Classifier
	ok := errors.As(err, &c)
	return c, ok
}

// PanicError is a panic of a component, turned into an error where the engine called it (rule C13). It
// is fatal: IsRetryable and IsSkippable are false even if the panic's value was an error with another
// classification.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic's value; the stack is in Stack.
func (e *PanicError) Error() string {
	if _, ended := e.Value.(goexit); ended {
		return "a component ended its goroutine (with runtime.Goexit, which a test's FailNow and package require call): return an error instead"
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// goexit is the Value of a PanicError for runtime.Goexit.
type goexit struct{}

// Guard calls f and turns its panic into a *PanicError (rule C13).
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// GuardGoroutine is Guard for the work of an awaited goroutine: done gets the error, and a *PanicError
// also if f ends the goroutine by runtime.Goexit, which cannot be stopped.
func GuardGoroutine(f func() error, done func(err error)) {
	returned := false
	var err error
	defer func() {
		if !returned {
			err = &PanicError{Value: goexit{}, Stack: debug.Stack()}
		}
		done(err)
	}()
	err = Guard(f)
	returned = true
}

// GuardApart is Guard for code that must not end the caller's goroutine either: f runs on its own
// goroutine.
func GuardApart(f func() error) error {
	ended := make(chan error, 1)
	go GuardGoroutine(f, func(err error) { ended <- err })
	return <-ended
}

// IsRetryable is false: a panic leaves an unknown state.
func (e *PanicError) IsRetryable() bool { return false }

// IsSkippable is false, for the same reason.
func (e *PanicError) IsSkippable() bool { return false }
