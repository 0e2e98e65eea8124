package panics

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a component's panic (rule C13), always fatal, whatever its value.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic's value; see Stack.
func (e *PanicError) Error() string {
	if _, ended := e.Value.(goexit); ended {
		return "a component ended its goroutine (with runtime.Goexit, which a test's FailNow and package require call): return an error instead"
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

type goexit struct{}

// Guard turns f's panic into a *PanicError (rule C13).
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// GuardGoroutine is Guard for an awaited goroutine: done gets a *PanicError also for runtime.Goexit, which
// cannot be stopped.
func GuardGoroutine(f func() error, done func(err error)) {
	returned := false
	var err error
	defer func() {
		if !returned {
			err = &PanicError{Value: goexit{}, Stack: debug.Stack()}
		}
		done(err)
	}()
	err = Guard(f)
	returned = true
}

// GuardApart is Guard on a goroutine of its own: f cannot end the caller's.
func GuardApart(f func() error) error {
	ended := make(chan error, 1)
	go GuardGoroutine(f, func(err error) { ended <- err })
	return <-ended
}

// IsRetryable is false: a panic leaves an unknown state.
func (e *PanicError) IsRetryable() bool { return false }

// IsSkippable is false too.
func (e *PanicError) IsSkippable() bool { return false }
