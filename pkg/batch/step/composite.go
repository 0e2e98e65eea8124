package step

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
)

// ErrInGroup refuses a partitioned step, or a child job, in an atomic group: its work is in
// transactions of its own.
var ErrInGroup = errors.New("it has its own transactions and cannot join the transaction of an atomic group")

func listenersOf(ctx context.Context, run *model.StepRun, make func(context.Context, *model.StepRun) ([]any, error)) ([]any, error) {
	if make == nil {
		return nil, nil
	}
	return make(ctx, run)
}

// longestPoll is the longest pause between two polls of a step that is not parked.
const longestPoll = time.Second

func unknownOutcome(settles bool) error {
	if settles {
		return ports.ErrLostCommit
	}
	return ports.ErrUnknownOutcome
}

// fewest is the number of items of a long list that a message names.
const fewest = 5

func few(texts []string, separator string) string {
	if len(texts) <= fewest {
		return strings.Join(texts, separator)
	}
	return strings.Join(texts[:fewest], separator) + separator + fmt.Sprintf("and %d more", len(texts)-fewest)
}
