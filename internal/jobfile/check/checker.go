package check

import (
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/itemtype"
	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// checker is what all checks of a file share: the file, which they complete, and its problems.
type checker struct {
	file     *model.File
	problems *yamlfile.Collector
	reg      *registry.Registry
	types    itemtype.Types
	now      func() time.Time
	// parents are the files from the first one to this one, each the parent of the next.
	parents []string
	// lenient overlooks mistakes in other files: see Parse.
	lenient bool
}

func (l *checker) checkAtLeastOne(n *yamlfile.Node, key string, x *int) {
	if x != nil && *x < 1 {
		l.problems.Add(n.Get(key), key+" must be at least 1", "")
	}
}

func (l *checker) checkPositive(n *yamlfile.Node, key string, d *time.Duration) {
	if d != nil && *d <= 0 {
		l.problems.Add(n.Get(key), key+" must be more than 0", "leave it out for none")
	}
}
