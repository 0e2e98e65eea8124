package core

import (
	"fmt"
	"slices"
	"strings"
)

// Diagram is Mermaid. Rows begin in the first move's first state; a state without moves, except raising the
// epoch, is an end.
func (m Machine[S]) Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	var states []S
	leads := map[S]bool{}
	for _, move := range m.moves {
		for _, s := range append(slices.Clone(move.From), move.To) {
			if !slices.Contains(states, s) {
				states = append(states, s)
			}
		}
		for _, from := range move.From {
			leads[from] = leads[from] || move.Intent != IntentTake
		}
	}
	if len(states) > 0 {
		fmt.Fprintf(&b, "    [*] --> %s\n", StateText(states[0]))
	}
	for _, move := range m.moves {
		for _, from := range move.From {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", StateText(from), StateText(move.To), move.Name)
		}
	}
	for _, s := range states {
		if !leads[s] {
			fmt.Fprintf(&b, "    %s --> [*]\n", StateText(s))
		}
	}
	return b.String()
}

// Table is Markdown: move, from, to, trigger, guard, prevented failure, intent.
func (m Machine[S]) Table() string {
	var b strings.Builder
	b.WriteString("| move | from | to | trigger | guard | prevents | intent |\n|---|---|---|---|---|---|---|\n")
	for _, move := range m.moves {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", move.Name, strings.Join(stateTexts(move.From), ", "), StateText(move.To),
			move.Trigger, move.Guard, move.Prevents, move.Intent)
	}
	return b.String()
}
