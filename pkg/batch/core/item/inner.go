package item

import "encoding/json"

// InnerPositions returns the positions of the writers inside of a writer, where at is that of
// one that hands its items to others: a JSON object with their positions under `writers`.
// Otherwise it returns at alone.
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
