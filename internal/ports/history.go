package ports

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NewDefinition hashes the text, and each file's name and text, sorted, each after a NUL: hex sha256, without
// paths. Alone it is the text's hash.
func NewDefinition(text, path string, files []core.DefinitionFile) core.Definition {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b core.DefinitionFile) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	sum.Write([]byte(text))
	for _, f := range files {
		sum.Write([]byte("\x00" + f.Name + "\x00" + f.Text))
	}
	return core.Definition{Hash: hex.EncodeToString(sum.Sum(nil)), Text: text, Path: path, Files: files}
}

// FoundIn is the row's status if it is the caller's, last moved in the caller's epoch: the result of a move
// with a lost reply.
func FoundIn(err error) (core.Status, bool) {
	refused, ok := errors.AsType[*core.TransitionError](err)
	if !ok || errors.Is(err, core.ErrLostOwner) || refused.Current == "" || refused.Last.Epoch != refused.Epoch {
		return "", false
	}
	return refused.Current, true
}

// IndexKey is the context key of the index in the plan.
const IndexKey = "surfin.index"

// PartitionOf is a record's partition.
func PartitionOf(step string, record core.StepExecution) core.Partition {
	p := core.Partition{Name: strings.TrimPrefix(record.Name, core.PartName(step, "")), Context: core.NewExecutionContext()}
	if record.Context != nil {
		p.Context = record.Context.Clone()
	}
	if index, ok := p.Context.Get(IndexKey); ok {
		n, _ := index.(int64) //nolint:errcheck // absent is zero
		p.Index = int(n)
	}
	return p
}

// ParsePlacement reads Stored.
func ParsePlacement(text string) (p core.Placement, err error) {
	if text != "" {
		err = p.UnmarshalJSON([]byte(text))
	}
	return p, err
}

// JobInstance is a job with one set of identifying parameters.
type JobInstance struct {
	ID      core.JobInstanceID
	JobName string
	Key     string
	BaseKey string // empty for a redrive
}

// LostOwner is the error of a lost execution and its steps: work since the last record is unknown.
const LostOwner = "lost owner"

// ActiveStatuses are of work not over.
func ActiveStatuses() []core.Status {
	return []core.Status{core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping}
}
