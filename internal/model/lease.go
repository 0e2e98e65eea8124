package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Lease is the time for which an owner may work, by its own clock (rule L9).
type Lease interface {
	Err() error
	// Late is closed shortly before the lease expires: code that has not returned is abandoned. nil
	// means never.
	Late() <-chan struct{}
	// Patience lasts until the lease has expired, also for recording an end.
	Patience
}

// LeaseError ends the work of an owner that could not renew its lease (rule L9).
type LeaseError struct {
	Age time.Duration
	// Err is the last heartbeat's failure; nil in a process that was stopped.
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

// IsOwnerGone reports whether another owner has the execution, or may have it soon.
func IsOwnerGone(err error) bool {
	return errors.Is(err, core.ErrLostOwner) || errors.As(err, new(*LeaseError))
}

const recordTime = 30 * time.Second
