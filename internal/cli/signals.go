package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// signals: the first requests a stop, the second cancels, the next kills as by
// default (rule L4).
type signals struct {
	stop chan struct{} // closed by the first signal
	end  func()        // stops listening; waits for the listener
}

func (env *environment) obeySignals(ctx context.Context) (context.Context, signals) {
	ctx, cancel := context.WithCancel(ctx)
	incoming := make(chan os.Signal, 2)
	signal.Notify(incoming, stopSignals()...)
	s := signals{stop: make(chan struct{})}
	over, done := make(chan struct{}), make(chan struct{})
	s.end = func() {
		signal.Stop(incoming)
		close(over)
		<-done
		cancel()
	}
	go func() {
		defer close(done)
		listen(incoming, over, s.stop, cancel, env.log)
		signal.Stop(incoming)
	}()
	return ctx, s
}

// A hangup ignored at the start, by nohup, stays ignored (rule L10).
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// ignoreBrokenPipes makes writes to a pipe without a reader fail: the exit code
// does not depend on the log's reader. Caught and not ignored, because
// processes of tasklets would inherit that.
func ignoreBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func listen(incoming <-chan os.Signal, over <-chan struct{}, stop chan<- struct{}, cancel func(), log *slog.Logger) {
	select {
	case got := <-incoming:
		log.Warn(got.String() + ": stopping after the current chunk commits; a second signal cancels at once")
		close(stop)
	case <-over:
		return
	}
	select {
	case got := <-incoming:
		log.Warn(got.String() + " again: cancelling; the current chunk is rolled back")
		cancel()
	case <-over:
	}
}
