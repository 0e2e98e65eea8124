package taskports

import "github.com/surfin-batch/surfin/pkg/batch/core/task"

// States returns all states.
func States() []task.State {
	return []task.State{task.Waiting, task.Pending, task.Assigned, task.Running, task.RetryScheduled, task.Orphaned, task.Succeeded, task.Failed, task.TimedOut, task.Canceled}
}

// StatusOf takes the first match: cancelled, running (a task is unfinished), failed, cancelled (a task was),
// completed.
func StatusOf(id task.GroupID, states map[task.State]int, cancelRequested bool) task.GroupStatus {
	s := task.GroupStatus{ID: id, ByState: states}
	unfinished := 0
	for state, n := range states {
		s.Total += n
		switch state {
		case task.Succeeded:
			s.Succeeded += n
		case task.Failed, task.TimedOut:
			s.Failed += n
		case task.Canceled:
			s.Canceled += n
		case task.Waiting, task.Pending, task.Assigned, task.Running, task.RetryScheduled, task.Orphaned:
			unfinished += n
		}
	}
	switch {
	case cancelRequested:
		s.State = task.GroupCancelled
	case unfinished > 0:
		s.State = task.GroupRunning
	case s.Failed > 0:
		s.State = task.GroupFailed
	case s.Canceled > 0:
		s.State = task.GroupCancelled
	default:
		s.State = task.GroupCompleted
	}
	return s
}

// GroupOverError refuses to cancel a finished group.
type GroupOverError struct {
	ID    task.GroupID
	State task.GroupState
}

// Error states the state.
func (e *GroupOverError) Error() string {
	return "the group is " + string(e.State) + ": it has nothing left to cancel"
}
