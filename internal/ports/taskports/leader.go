package taskports

import (
	"context"
	"time"
)

// Leadership elects the leader. Its writes share a transaction with Fence, so a replaced
// leader writes nothing.
type Leadership interface {
	// Lead takes or renews the lead for the lease; false if another process leads. Each take-over
	// has a higher epoch.
	Lead(ctx context.Context, holder string, lease time.Duration) (epoch int64, leads bool, err error)
	// Fence keeps others from taking over until ctx's transaction ends; core.ErrLostOwner if the
	// holder does not lead in that epoch.
	Fence(ctx context.Context, holder string, epoch int64) error
	Resign(ctx context.Context, holder string, epoch int64) error
	// Leader returns the current or last leader, or nil.
	Leader(ctx context.Context) (*Leader, error)
}

// Leader is the process that leads.
type Leader struct {
	Holder  string `json:"holder"`
	Epoch   int64  `json:"epoch"`
	Leading bool   `json:"leading"`
}
