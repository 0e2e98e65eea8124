package taskports

import (
	"context"
	"time"
)

// Leadership elects the leading process. A leader's writes are fenced: each is in one transaction with
// Fence, so a leader that was paused and replaced writes nothing.
type Leadership interface {
	// Lead takes the lead, or renews it, for the time of the lease. leads is false if another process
	// leads, until its lease ends. Each take-over has a higher epoch.
	Lead(ctx context.Context, holder string, lease time.Duration) (epoch int64, leads bool, err error)
	// Fence holds the leader in the transaction that ctx carries: until its end no process takes over.
	// The error is core.ErrLostOwner if the holder does not lead in that epoch.
	Fence(ctx context.Context, holder string, epoch int64) error
	// Resign ends the lease, so that another process leads at once.
	Resign(ctx context.Context, holder string, epoch int64) error
	// Leader returns the current or last leader; nil if there never was one.
	Leader(ctx context.Context) (*Leader, error)
}

// Leader is the process that leads.
type Leader struct {
	Holder string `json:"holder"`
	Epoch  int64  `json:"epoch"`
	// Leading means that the lease lasts, for LeaseLeft seconds.
	Leading   bool    `json:"leading"`
	LeaseLeft float64 `json:"lease_left"`
	// Since is when it took the lead; zero means that an older program took it, which does not store this.
	Since time.Time `json:"since,omitzero"`
	// Deciders of its process.
	Deciders []string `json:"-"`
}
