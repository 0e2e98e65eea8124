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

// StatusOf takes the first match: cancelled, running (a task is unfinished), failed, cancelled (a task was),
// completed.
func StatusOf(id GroupID, states map[State]int, cancelRequested bool) GroupStatus {
	s := GroupStatus{ID: id, ByState: states}
	unfinished := 0
	for state, n := range states {
		s.Total += n
		switch state {
		case Succeeded:
			s.Succeeded += n
		case Failed, TimedOut:
			s.Failed += n
		case Canceled:
			s.Canceled += n
		case Waiting, Pending, Assigned, Running, RetryScheduled, Orphaned:
			unfinished += n
		}
	}
	switch {
	case cancelRequested:
		s.State = GroupCancelled
	case unfinished > 0:
		s.State = GroupRunning
	case s.Failed > 0:
		s.State = GroupFailed
	case s.Canceled > 0:
		s.State = GroupCancelled
	default:
		s.State = GroupCompleted
	}
	return s
}
