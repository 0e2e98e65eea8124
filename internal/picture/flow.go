package picture

import (
	"slices"
)

// Node is an element of a flow.
type Node struct {
	// ID is unique in the picture: an edge leads to it.
	ID string
	// Title and Note are its two lines.
	Title, Note string
	// Class is its kind and state, such as "step failed".
	Class string
	// Link is the address that it leads to; empty means none.
	Link string
	// Edges leave it. An edge to the next node of its list is drawn as an arrow down.
	Edges []Edge
	// Flows are drawn side by side inside of it.
	Flows [][]Node
}

// Edge leads to a node of the same list, or to an end.
type Edge struct {
	// To is the ID of a node, or empty for an end with the text End.
	To, End string
	// Label is the exit code or the condition; empty after success.
	Label string
	// Taken: the execution took it. A picture of an execution draws the others pale.
	Taken bool
}

// The measures of a flow, in units.
const (
	glyph     = 7 // the width of a character
	boxHeight = 44
	boxMin    = 150
	boxMax    = 330
	padding   = 10
	gap       = 34 // between elements, for the arrow and its label
	branchGap = 26
	header    = 30 // of an element with flows
	lane      = 16 // for a jump
	endWidth  = 150
	textLine  = 17
	baseline  = 18
)

// Flow draws the elements from top to bottom in the order of the file: flows inside of an element side by
// side in its box, jumps ahead and ends at the right, loops at the left. states says that the picture is of
// an execution.
func Flow(title string, nodes []Node, states bool) string {
	c := &canvas{}
	c.b.WriteString(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>`)
	l := layOut(nodes)
	class := "flow"
	if states {
		class = "flow run"
	}
	l.draw(c, padding, padding)
	return c.svg(class, title, l.width+2*padding, l.height+2*padding)
}

// list is a laid-out list: the boxes in one column, with lanes at both sides.
type list struct {
	boxes         []box
	left, right   []jump
	leftWidth     int
	column        int // the width of the boxes
	width, height int
}

type box struct {
	Node
	width, height int
	y             int
	flows         []list
	ends          []Edge
}

// jump is an edge that passes other boxes, in a lane of its own.
type jump struct {
	from, to int
	edge     Edge
	lane     int
}

func layOut(nodes []Node) list {
	var l list
	for _, n := range nodes {
		b := boxOf(n)
		l.column = max(l.column, b.width)
		l.boxes = append(l.boxes, b)
	}
	y := 0
	for i := range l.boxes {
		l.boxes[i].y = y
		y += l.boxes[i].height + gap
	}
	l.height = max(0, y-gap)
	l.sortEdges()
	lanes := func(jumps []jump) int { return assignLanes(jumps) * lane }
	l.leftWidth = lanes(l.left)
	rightWidth := lanes(l.right)
	for _, b := range l.boxes {
		if len(b.ends) > 0 {
			rightWidth = max(rightWidth, lanes(l.right)+endWidth)
		}
	}
	l.width = l.leftWidth + l.column + rightWidth
	return l
}

func boxOf(n Node) box {
	longest := max(len([]rune(n.Title)), len([]rune(n.Note)))
	b := box{Node: n, width: min(max(longest*glyph+2*padding, boxMin), boxMax), height: boxHeight}
	if len(n.Flows) == 0 {
		return b
	}
	width, height := padding, 0
	for i, inner := range n.Flows {
		of := layOut(inner)
		b.flows = append(b.flows, of)
		height = max(height, of.height)
		width += of.width + padding
		if i > 0 {
			width += branchGap - padding
		}
	}
	b.width, b.height = max(b.width, width), header+height+2*padding
	return b
}

// sortEdges finds out which edges are arrows down, jumps and ends.
func (l *list) sortEdges() {
	for from := range l.boxes {
		b := &l.boxes[from]
		for _, e := range b.Edges {
			to := slices.IndexFunc(l.boxes, func(other box) bool { return e.To != "" && other.ID == e.To })
			switch {
			case to < 0:
				if e.End != "" {
					b.ends = append(b.ends, e)
				}
			case to == from+1: // an arrow down
			case to > from:
				l.right = append(l.right, jump{from: from, to: to, edge: e})
			default:
				l.left = append(l.left, jump{from: from, to: to, edge: e})
			}
		}
	}
}

// assignLanes gives jumps that pass the same boxes lanes of their own, the short ones inside, and
// returns the number of lanes.
func assignLanes(jumps []jump) (lanes int) {
	span := func(j jump) (int, int) { return min(j.from, j.to), max(j.from, j.to) }
	order := make([]int, len(jumps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		fromA, toA := span(jumps[a])
		fromB, toB := span(jumps[b])
		return (toA - fromA) - (toB - fromB)
	})
	var taken [][]int // the jumps of each lane
	for _, i := range order {
		from, to := span(jumps[i])
		free := slices.IndexFunc(taken, func(in []int) bool {
			return !slices.ContainsFunc(in, func(k int) bool {
				otherFrom, otherTo := span(jumps[k])
				return from < otherTo && otherFrom < to || from == otherFrom || to == otherTo
			})
		})
		if free < 0 {
			free, taken = len(taken), append(taken, nil)
		}
		taken[free] = append(taken[free], i)
		jumps[i].lane = free + 1
	}
	return len(taken)
}
