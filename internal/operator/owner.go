package operator

import (
	"time"
)

// Owner is the process that runs an execution.
type Owner struct {
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// Dead means that the process is known to be dead: Recover ends the execution.
	Dead bool `json:"dead,omitempty"`
	// Lost means that a launch of the instance takes the execution over, and Recover ends it: the
	// process is dead, or its lease has expired by the clock of the database. No process does so by
	// itself.
	Lost bool `json:"lost,omitempty"`
}

// Lease is the state of the lease of a running execution's owner.
type Lease string

// The states of a lease.
const (
	LeaseHeld    Lease = "held"
	LeaseExpired Lease = "expired"
	// LeaseDead means that the owner's process was on this host, and does not exist any more.
	LeaseDead Lease = "dead"
)

func leaseOf(o *Owner) Lease {
	switch {
	case o == nil:
		return ""
	case o.Dead:
		return LeaseDead
	case o.Lost:
		return LeaseExpired
	}
	return LeaseHeld
}
