package task

// GroupState is derived, never stored.
type GroupState string

// The states of a group.
const (
	GroupRunning   GroupState = "running"
	GroupCompleted GroupState = "completed"
	GroupFailed    GroupState = "failed"
	GroupCancelled GroupState = "cancelled"
)

// GroupStatus counts a group's tasks.
type GroupStatus struct {
	ID        GroupID       `json:"id"`
	State     GroupState    `json:"state"`
	Total     int           `json:"total"`
	Succeeded int           `json:"succeeded"`
	Failed    int           `json:"failed"` // FAILED or TIMED_OUT
	Canceled  int           `json:"canceled"`
	ByState   map[State]int `json:"by_state"`
}

// IsOver reports whether no task will move by itself.
func (s GroupStatus) IsOver() bool {
	return s.Total == s.Succeeded+s.Failed+s.Canceled
}
