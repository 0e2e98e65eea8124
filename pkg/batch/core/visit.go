package core

import (
	"math"
	"strconv"
)

// Visit is one visit of an element by the walk of a flow. Ordinal counts the visits of a flow from 1,
// over all attempts of the instance; 0 means that no walk visits the step, such as a partition. Flow is
// the log that the visit belongs to: empty for the job's own flow, else made by Visit.Inner.
type Visit struct {
	Flow    string `json:"flow,omitempty"`
	Ordinal int64  `json:"ordinal,omitempty"`
	Element string `json:"element,omitempty"`
}

// MaxFlowName bounds the name of a flow's log, in bytes: a row of the journal is found by it.
const MaxFlowName = 2000

// MaxElementName bounds the name of an element, in bytes.
const MaxElementName = 100

// LongestInner returns the longest possible name for the log of a branch of an element in the flow with
// that log.
func LongestInner(flow, element string, branch int) string {
	return Visit{Flow: flow, Ordinal: math.MaxInt64, Element: element}.Inner(branch)
}

// FlowPrefix returns the prefix of the log names of the flows inside the elements of a flow:
// FlowPrefix(flow) + ELEMENT + "#" + ORDINAL + "/" + BRANCH.
func FlowPrefix(flow string) string {
	if flow == "" {
		return ""
	}
	return flow + "/"
}

// Inner names the log of a flow inside the visited element, such as loadAll#3/1 for its second branch.
func (v Visit) Inner(branch int) string {
	return FlowPrefix(v.Flow) + v.Element + "#" + strconv.FormatInt(v.Ordinal, 10) + "/" + strconv.Itoa(branch)
}
