package ports

import (
	"math"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// MaxFlowName bounds a flow's log name, in bytes: an index finds rows by it.
const MaxFlowName = 2000

// MaxElementName is in bytes.
const MaxElementName = 100

// LongestInner is the longest log name of an element's branch.
func LongestInner(flow, element string, branch int) string {
	return core.Visit{Flow: flow, Ordinal: math.MaxInt64, Element: element}.Inner(branch)
}

// MaxPositionBytes is for a step's position (rule D4).
const MaxPositionBytes = 8 << 10
