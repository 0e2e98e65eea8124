package task

// State is the state of a task.
type State string

// The states. The last four are final.
const (
	Waiting        State = "WAITING"         // waits for other tasks of its group
	Pending        State = "PENDING"         // waits for a worker
	Assigned       State = "ASSIGNED"        // not started
	Running        State = "RUNNING"         // a worker executes it
	RetryScheduled State = "RETRY_SCHEDULED" // waits for its next attempt
	Orphaned       State = "ORPHANED"        // its worker left before the start
	Succeeded      State = "SUCCEEDED"
	Failed         State = "FAILED"
	TimedOut       State = "TIMED_OUT"
	Canceled       State = "CANCELED"
)

// IsOver reports whether the state is final.
func (s State) IsOver() bool {
	switch s {
	case Succeeded, Failed, TimedOut, Canceled:
		return true
	case Waiting, Pending, Assigned, Running, RetryScheduled, Orphaned:
	}
	return false
}
