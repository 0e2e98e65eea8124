package core

import "errors"

// Why work ended or was refused: errors.Is.
var (
	// ErrStopped: a stop was requested.
	ErrStopped = errors.New("stopped")
	// ErrLostOwner: another owner has taken over; stop and roll back (rule L2).
	ErrLostOwner = errors.New("the execution was taken over by another owner")
	// ErrNotFound: an ID not in the repository.
	ErrNotFound = errors.New("not found")
	// ErrSchemaMissing: tables are absent or outdated.
	ErrSchemaMissing = errors.New("the repository's schema is missing or outdated")
)
