// Package exception classifies errors: retryable, skippable, or fatal to the step.
//
// An error classifies itself by [BatchError] or a [Classifier] in its chain. %w and errors.Join keep it;
// message text is never used.
//
// It imports the standard library only.
package exception

import (
	"context"
	"errors"
)

// Class is a kind of error, as in `retry.errors` and `skip.errors`.
type Class string

// The classes of the framework's own errors.
const (
	// classNone is open.
	classNone Class = ""
	// ClassInvalidItem does not fit its type or rules.
	ClassInvalidItem Class = "invalid_item"
	// ClassParse is unreadable text.
	ClassParse Class = "parse"
	// ClassValidate broke a validate processor's rule.
	ClassValidate Class = "validate"
	// ClassExpression: an expression failed.
	ClassExpression Class = "expression"
)

// Classifier may be implemented by your own errors, as by [BatchError].
type Classifier interface {
	IsRetryable() bool
	IsSkippable() bool
}

// BatchError classifies itself; zero flags mean fatal.
type BatchError struct {
	// Op is the operation, such as "csv: read", or empty.
	Op string
	// Class may be empty.
	Class Class
	Err   error

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

// IsRetryable reports whether a retry may succeed.
func (e *BatchError) IsRetryable() bool { return e.Retryable }

// IsSkippable reports whether the item may be left out.
func (e *BatchError) IsSkippable() bool { return e.Skippable }

// Retryable marks err as worth another attempt.
func Retryable(op string, err error) error {
	return &BatchError{Op: op, Err: err, Retryable: true}
}

// Skippable marks err as one item's fault.
func Skippable(op string, err error) error {
	return &BatchError{Op: op, Err: err, Skippable: true}
}

// InvalidItem marks err as skippable, of class parse, validate, expression or invalid_item.
func InvalidItem(op string, class Class, err error) error {
	return &BatchError{Op: op, Class: class, Err: err, Skippable: true}
}

// Fatal marks err as the step's end, whatever is configured.
func Fatal(op string, err error) error {
	return &BatchError{Op: op, Err: err}
}

// IsRetryable reports whether the first classifier is; the end of the context never.
func IsRetryable(err error) bool {
	c, ok := classifier(err)
	return ok && c.IsRetryable()
}

// IsSkippable reports whether the first classifier is; the end of the context never.
func IsSkippable(err error) bool {
	c, ok := classifier(err)
	return ok && c.IsSkippable()
}

// ClassOf is the outermost classified BatchError's.
func ClassOf(err error) Class {
	for rest := err; rest != nil; {
		var be *BatchError
		if !errors.As(rest, &be) {
			return classNone
		}
		if be.Class != classNone {
			return be.Class
		}
		rest = be.Err
	}
	return classNone
}

func classifier(err error) (Classifier, bool) {
	if err == nil || errors.Is(err, context.Canceled) || isDeadline(err) {
		return nil, false
	}
	var c Classifier
	ok := errors.As(err, &c)
	return c, ok
}
