package job

import (
	"github.com/surfin-batch/surfin/internal/model"
)

// stepRelease is the stop signal of a step that can be given back.
type stepRelease struct{ stepStop }

func (s stepRelease) Requested() bool { return s.run.stop.isRequested() || s.run.stop.isReleased() }

func (s stepRelease) Done() <-chan struct{} { return s.run.stop.either }

func (s stepRelease) Releasing() bool { return s.run.releasing() }

// stepLeave is the stop signal of a step made of other steps that can be given back while it waits.
type stepLeave struct{ stepStop }

func (s stepLeave) Left() <-chan struct{} { return s.run.stop.release }

// finallyRelease is the stop signal of a step of `finally` that can be given back: a stop request does
// not count.
type finallyRelease struct{ run *run }

func (s finallyRelease) Requested() bool { return s.run.stop.isReleased() }

func (s finallyRelease) Done() <-chan struct{} { return s.run.stop.release }

func (s finallyRelease) Request() {}

func (s finallyRelease) Releasing() bool { return s.run.stop.isReleased() }

// finallyLeave is finallyRelease for a step made of other steps.
type finallyLeave struct {
	model.StopSignal // never signals a stop
	run              *run
}

func (s finallyLeave) Left() <-chan struct{} { return s.run.stop.release }

// stepStop is the stop signal of the run's steps.
type stepStop struct{ run *run }

func (s stepStop) Requested() bool { return s.run.stop.isRequested() }

func (s stepStop) Done() <-chan struct{} { return s.run.stop.requested }

func (s stepStop) Request() { s.run.askStop() }

func (r *run) releasing() bool { return r.stop.isReleased() && !r.stop.isRequested() }

func (r *run) isResumed() bool { return r.resumed != nil && !r.resumed.First }
