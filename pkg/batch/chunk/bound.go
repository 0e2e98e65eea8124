package chunk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// boundError refuses to continue committed work with other values: two sets of rows would be mixed, or
// the rows of one step be in two targets.
type boundError struct {
	// Of is the component, Names are its values, with at least one difference.
	Of    string
	Names []string
}

// Error names the values and the possible solutions.
func (e *boundError) Error() string {
	return fmt.Sprintf("the committed work of %s used another value of %s: restart with the previous value, accept the new one (--accept-changes), or run the step from its start (--from-start)",
		e.Of, strings.Join(e.Names, " or "))
}

// bind compares the values of the components with the last commit's, and takes them over.
func (p *position) bind(bound []Bound, accept bool) error {
	now := make([]string, len(bound))
	var errs []error
	for i, b := range bound {
		now[i] = b.Hash
		if i < len(p.Bound) && p.Bound[i] != "" && b.Hash != "" && p.Bound[i] != b.Hash && !accept {
			errs = append(errs, &boundError{Of: b.Of, Names: b.Names})
		}
	}
	if len(errs) > 0 {
		return exception.Fatal("restart", errors.Join(errs...))
	}
	if !slices.ContainsFunc(now, func(hash string) bool { return hash != "" }) {
		now = nil
	}
	p.Bound = now
	return nil
}
