package walk

import (
	"slices"
)

// Edge is a transition after an outcome that a plan does not know.
type Edge struct {
	From string
	// On is the pattern of the exit code of From; core.ExitCompleted stands for every success; empty
	// means that the outcome of From is known.
	On string
	// OtherSuccess means that On stands for each success except COMPLETED, which leads elsewhere.
	OtherSuccess bool
}

// Uncertainty is the part of the path to the current element that a plan does not know. It is zero in a
// walk that acts.
type Uncertainty struct {
	// After is the element with the unknown outcome, and If the condition with the unknown answer.
	After, If string
	// PathUnknown means that several elements may be next.
	PathUnknown bool
	// Ending is the transition that is followed to an end.
	Ending *Edge
	edges  map[string][]Edge // after an unknown outcome, by the element that they lead to
}

// IsCertain reports whether a plan knows the path to the current element.
func (u *Uncertainty) IsCertain() bool { return u.After == "" && !u.PathUnknown }

// EdgesTo returns the transitions after unknown outcomes that lead to the element.
func (u *Uncertainty) EdgesTo(element string) []Edge { return slices.Clone(u.edges[element]) }

func (u *Uncertainty) addEdge(edge Edge, to string) {
	if u.IsCertain() || slices.Contains(u.edges[to], edge) {
		return
	}
	if u.edges == nil {
		u.edges = map[string][]Edge{}
	}
	u.edges[to] = append(u.edges[to], edge)
}
