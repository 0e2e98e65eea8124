package core

import (
	"strconv"
)

// Visit is a visit of an element. Ordinal counts a flow's visits from 1 over all attempts; 0: no walk visits
// it, such as a partition. Flow is its log: empty for the job's own, else by Visit.Inner.
type Visit struct {
	Flow    string `json:"flow,omitempty"`
	Ordinal int64  `json:"ordinal,omitempty"`
	Element string `json:"element,omitempty"`
}

// FlowPrefix begins inner log names: FlowPrefix(flow) + ELEMENT + "#" + ORDINAL + "/" + BRANCH.
func FlowPrefix(flow string) string {
	if flow == "" {
		return ""
	}
	return flow + "/"
}

// Inner names an inner flow's log: loadAll#3/1 for the second branch.
func (v Visit) Inner(branch int) string {
	return FlowPrefix(v.Flow) + v.Element + "#" + strconv.FormatInt(v.Ordinal, 10) + "/" + strconv.Itoa(branch)
}
