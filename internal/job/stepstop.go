package job

import "github.com/surfin-batch/surfin/pkg/batch/core"

// stepRelease is the stop signal of a step that can be given back.
type stepRelease struct{ stepStop }

// Requested implements core.StopSignal.
func (s stepRelease) Requested() bool { return s.run.stop.requested() || s.run.stop.isReleased() }

// Done implements core.StopSignal.
func (s stepRelease) Done() <-chan struct{} { return s.run.stop.either }

// Releasing implements core.ReleaseSignal.
func (s stepRelease) Releasing() bool { return s.run.releasing() }

// stepLeave is the stop signal of a step made of other steps that can be given back while it waits.
type stepLeave struct{ stepStop }

// Left implements core.LeaveSignal.
func (s stepLeave) Left() <-chan struct{} { return s.run.stop.release }

// finallyRelease is the stop signal of a step of `finally` that can be given back: a stop request does
// not count.
type finallyRelease struct{ run *run }

// Requested implements core.StopSignal.
func (s finallyRelease) Requested() bool { return s.run.stop.isReleased() }

// Done implements core.StopSignal.
func (s finallyRelease) Done() <-chan struct{} { return s.run.stop.release }

// Request implements core.StopSignal.
func (s finallyRelease) Request() {}

// Releasing implements core.ReleaseSignal.
func (s finallyRelease) Releasing() bool { return s.run.stop.isReleased() }

// finallyLeave is finallyRelease for a step made of other steps.
type finallyLeave struct {
	core.StopSignal // never signals a stop
	run             *run
}

// Left implements core.LeaveSignal.
func (s finallyLeave) Left() <-chan struct{} { return s.run.stop.release }

// stepStop is the stop signal of the run's steps.
type stepStop struct{ run *run }

// Requested implements core.StopSignal.
func (s stepStop) Requested() bool { return s.run.stop.requested() }

// Done implements core.StopSignal.
func (s stepStop) Done() <-chan struct{} { return s.run.stop.channel }

// Request implements core.StopSignal.
func (s stepStop) Request() { s.run.askStop() }

// releasing reports whether the execution is to be given back, and not stopped.
func (r *run) releasing() bool { return r.stop.isReleased() && !r.stop.requested() }

// isResumed reports whether the execution was parked in its work.
func (r *run) isResumed() bool { return r.resumed != nil && !r.resumed.First }
