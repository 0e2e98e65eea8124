package item

import "encoding/json"

// InnerPositions returns the positions of the writers inside a writer if its position at is a JSON
// object with positions under `writers`: a writer that passes its items to others. Otherwise it returns
// at alone.
func InnerPositions(at Position) []Position {
	var outer struct {
		Writers []json.RawMessage `json:"writers"`
	}
	if err := json.Unmarshal(at, &outer); err != nil || outer.Writers == nil {
		return []Position{at}
	}
	var list []Position
	for _, inner := range outer.Writers {
		if string(inner) != "null" {
			list = append(list, InnerPositions(Position(inner))...)
		}
	}
	return list
}
