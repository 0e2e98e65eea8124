package item

import "encoding/json"

// InnerPositions are the positions under `writers` of a writer of writers; else at alone.
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
