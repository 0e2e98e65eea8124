package operator

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
