// Package partcount decides how many parts a partitioner makes if the job file leaves it open.
//
// It imports core and core/registry only.
package partcount

import (
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Number is the option `parts` of a partitioner; 0 means auto.
type Number int

// Check reports a number, of the option with this key, that a step cannot have.
func (n Number) Check(key string) error {
	if n < 0 || n > core.MaxPartitions {
		return &registry.ConfigError{Key: key, Err: fmt.Errorf("%d is not between 1 and %d", n, core.MaxPartitions)}
	}
	return nil
}

// Planner is implemented by partitioners that want to know how many parts run at once. The step calls it before
// Partition, unless the parts run on other processes.
type Planner interface{ SetWorkers(n int) }

// Wanted is a number of parts, or the workers that parts are made for.
type Wanted struct {
	Number Number
	// Workers is how many parts run at once; 0 means unknown.
	Workers int
}

const (
	// partsPerWorker evens out parts of unequal speed: the last one is a quarter of a worker's share.
	partsPerWorker = 4
	// unknownWorkers are assumed for parts on other processes.
	unknownWorkers = 16
)

// Most returns the highest number of parts.
func (w Wanted) Most() int {
	if w.Number > 0 {
		return int(w.Number)
	}
	workers := w.Workers
	if workers <= 0 {
		workers = unknownWorkers
	}
	return min(workers, core.MaxPartitions/partsPerWorker) * partsPerWorker
}

// Of returns the number for work of the given size: with auto no part is smaller than least, unless there is only one.
func (w Wanted) Of(size, least int64) int {
	most := w.Most()
	if w.Number > 0 {
		return most
	}
	return int(max(1, min(int64(most), size/least)))
}
