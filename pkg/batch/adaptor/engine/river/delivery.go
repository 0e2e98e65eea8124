package river

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

// All deliveries are of one kind: a leader of River discards jobs of unknown kinds.
type delivery struct {
	// Work is KIND/ID: one value, which our index finds.
	Work  string `json:"work"`
	Epoch int64  `json:"epoch"`
}

func (delivery) Kind() string { return "surfin_delivery" }

func deliveryOf(d engine.Delivery) delivery {
	return delivery{Work: fmt.Sprintf("%s/%d", d.Kind, d.ID), Epoch: d.Epoch}
}

// names are the queues by their names in River.
func deliveryFrom(job *river.Job[delivery], names map[string]string) (engine.Delivery, error) {
	d := engine.Delivery{Epoch: job.Args.Epoch, Queue: names[job.Queue], Priority: job.Priority, NotBefore: job.ScheduledAt}
	kind, id, _ := strings.Cut(job.Args.Work, "/")
	d.Kind = engine.Kind(kind)
	if _, err := fmt.Sscanf(id, "%d", &d.ID); err != nil {
		return d, fmt.Errorf("job %d of River: its work %q is not KIND/ID", job.ID, job.Args.Work)
	}
	if err := d.Check(); err != nil {
		return d, fmt.Errorf("job %d of River: %w", job.ID, err)
	}
	return d, nil
}

// River allows no other names: a hash replaces them.
var plain = regexp.MustCompile(`^[a-z0-9]+([_-]?[a-z0-9]+)*$`)

const (
	maxPlain  = 64
	hashed    = "x-"
	hashBytes = 20
)

func queueOf(name string) string {
	if len(name) <= maxPlain && plain.MatchString(name) && !strings.HasPrefix(name, hashed) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hashed + hex.EncodeToString(sum[:hashBytes])
}

const (
	// between two polls of River's leader for due jobs
	soon = 5 * time.Second
	// how much the database's clock may be set back between two readings
	skew = time.Minute
)

// schedule uses the database's clock. A job due soon needs no leader, as workers poll for it.
type schedule struct{ river.HookDefaults }

func (schedule) InsertBegin(ctx context.Context, params *rivertype.JobInsertParams) error {
	now := timeIn(ctx)
	switch {
	case params.ScheduledAt == nil || !params.ScheduledAt.After(now):
		since := now
		if params.ScheduledAt != nil {
			since = *params.ScheduledAt
		}
		past := since.Add(-skew)
		params.ScheduledAt, params.State = &past, rivertype.JobStateAvailable
	case params.ScheduledAt.Before(now.Add(soon)):
		params.State = rivertype.JobStateAvailable
	}
	return nil
}
