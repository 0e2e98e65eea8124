package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// SkipFilter selects skipped items; zero fields select all.
type SkipFilter struct {
	Execution core.JobExecutionID
	// Instance selects the items of all attempts of an instance, Job those of all instances of a job;
	// with Execution neither is needed.
	Instance core.JobInstanceID
	Job      string
	Step     string
	// Parts also selects the items of the partitions of Step.
	Parts bool
	Phase core.Phase
	// Index selects the items of the element of an array with this number (item.Meta).
	Index int64
	// After selects items with a greater ID: the key of the next page.
	After int64
	// UpTo selects items with an ID up to it; 0 means all.
	UpTo int64
	// IDs selects items by their number; nil means all.
	IDs []int64
	// Left selects the items that no execution has redriven.
	Left bool
	// Class selects errors of this class, Text those whose error, item or text has it, in upper or lower case.
	Class, Text string
	// Window is the number of items of an execution that the filters see; 0 means all.
	Window int
	// Limit is the page size; 0 means 50.
	Limit int
}

// SkipReader reads stored skips.
type SkipReader interface {
	// SkippedItems lists stored skips, in the order in which they were stored.
	SkippedItems(ctx context.Context, filter SkipFilter) ([]core.SkippedItem, error)
	// LastSkipped returns the greatest ID of the skips that the filter selects, or 0. Its limit does
	// not count.
	LastSkipped(ctx context.Context, filter SkipFilter) (int64, error)
}

// Skips records the fate of skips (rule C12).
type Skips interface {
	SkipReader
	// SkippedItem returns one; ErrNotFound if there is none.
	SkippedItem(ctx context.Context, id int64) (*core.SkippedItem, error)
	// WindowEnd returns the ID of the last item of a full window; 0 if fewer are there.
	WindowEnd(ctx context.Context, filter SkipFilter) (int64, error)
	// MarkRedriven notes, in the transaction that ctx carries for the repository's database, that an
	// execution has now processed the items. If another one did so first it is an ErrRedriven: the
	// caller rolls back, so that no item is redriven twice.
	MarkRedriven(ctx context.Context, by core.JobExecutionID, ids []int64) error
}

// SkipCount is a number of skipped items.
type SkipCount struct {
	Step  string
	Phase core.Phase
	// Class is the class of their errors, or empty.
	Class string
	Count int64
	// Left is the number of them that no execution has redriven.
	Left int64
	// More means that there may be more: only the first 5,000 items of the execution are counted.
	More bool
}

// SkipGroupFilter selects the newest skipped items of all executions.
type SkipGroupFilter struct {
	// Since leaves out earlier items, Before those with this ID or a greater one; 0 means none.
	Since  time.Time
	Before int64
	// Limit is the number of items that are read.
	Limit int
}

// SkipGroup counts items of one step execution with the same phase, class and beginning of the error.
type SkipGroup struct {
	Execution   core.JobExecutionID
	JobName     string
	Step        string
	Phase       core.Phase
	Class       string
	Error       string
	Count, Left int64
	// Last is the newest item.
	Last        int64
	First, Ends time.Time
}

// SkipGroups are the groups of the items that were read.
type SkipGroups struct {
	Groups []SkipGroup
	// Read is the number of items that were read, and Reached the last of them, of that time; 0 means that
	// there are no earlier ones in the window.
	Read      int
	Reached   int64
	ReachedAt time.Time
}
