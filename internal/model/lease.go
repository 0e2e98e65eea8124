package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Lease is the time for which an owner may work, by its own clock (rule L9).
type Lease interface {
	// Err returns a *LeaseError if nothing may begin any more, else nil.
	Err() error
	// Late returns a channel that is closed shortly before the lease has expired, when the work should have
	// ended: code that has not returned is abandoned. nil means never.
	Late() <-chan struct{}
	// Patience lasts until the lease has expired, also while an end is recorded.
	Patience
}

// LeaseError ends the work of an owner that could not renew its lease (rule L9).
type LeaseError struct {
	// Age is the time since the last confirmed heartbeat.
	Age time.Duration
	// Err is the failure of the last heartbeat; nil means that none has failed, as in a process that
	// was stopped.
	Err error
}

// Error states the time and the cause.
func (e *LeaseError) Error() string {
	text := fmt.Sprintf("the lease could not be renewed for %v", e.Age.Round(100*time.Millisecond))
	if e.Err == nil {
		return text + ": no heartbeat got a response; was the process or the machine suspended?"
	}
	return text + ": " + e.Err.Error()
}

// IsOwnerGone reports whether err means that an owner may not continue at all: another owner has the
// execution, or may have it soon.
func IsOwnerGone(err error) bool {
	return errors.Is(err, core.ErrLostOwner) || errors.As(err, new(*LeaseError))
}

// recordTime bounds the record of an end without a lease.
const recordTime = 30 * time.Second
