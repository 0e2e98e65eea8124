package task

import (
	"context"
	"time"
)

// Leadership is which of many processes leads. What a leader writes is fenced: it is in
// one transaction with Fence, so that one that was paused, and is not the leader any more,
// writes nothing.
type Leadership interface {
	// Lead takes the lead, or renews it, for the time of the lease. leads is false where
	// another process leads, until its lease ends. Each take-over has a higher epoch.
	Lead(ctx context.Context, holder string, lease time.Duration) (epoch int64, leads bool, err error)
	// Fence holds the leader in the transaction that ctx carries: until its end no process
	// takes over. core.ErrLostOwner where the holder does not lead in that epoch.
	Fence(ctx context.Context, holder string, epoch int64) error
	// Resign ends the lease, so that another process leads at once.
	Resign(ctx context.Context, holder string, epoch int64) error
	// Leader returns who leads, or led last; nil: no process ever did.
	Leader(ctx context.Context) (*Leader, error)
}

// Leader is the process that leads.
type Leader struct {
	Holder string `json:"holder"`
	Epoch  int64  `json:"epoch"`
	// Leading says that the lease lasts.
	Leading bool `json:"leading"`
}
