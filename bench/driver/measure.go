package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type run struct {
	Result
	// process is the time from its start to its end, in seconds; clientCPU and serverCPU are CPU seconds,
	// serverCPU is -1 for an invisible server; peak is its RSS in bytes.
	process, clientCPU, serverCPU float64
	peak                          int64
}

const (
	runTime   = 20 * time.Minute
	peakEvery = 5 * time.Millisecond
)

func (b *bench) measure(ctx context.Context, c Contestant, w Work) (run, error) {
	if a, ok := c.(asked); ok {
		begin := time.Now()
		r, err := a.Ask(ctx, b)
		return run{Result: r, process: time.Since(begin).Seconds(), serverCPU: -1}, err
	}
	cmd, err := c.Command(w)
	if err != nil {
		return run{}, err
	}
	var stderr bytes.Buffer
	stdout := &noticed{begins: b.server.cpu}
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	before := b.server.cpu()
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return run{}, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	peak, err := watch(ctx, cmd.Process, done)
	r := run{process: time.Since(begin).Seconds(), peak: peak, serverCPU: -1}
	if after := b.server.cpu(); before >= 0 && after >= 0 {
		r.serverCPU = after - before
	}
	if err != nil {
		said := stderr.Bytes()
		if len(said) == 0 {
			said = stdout.Bytes()
		}
		return r, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(said))
	}
	r.clientCPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if r.Result, err = c.Result(stdout.Bytes()); err != nil {
		return r, err
	}
	if r.ClientCPU > 0 { // the process has done more than the work, and so has the server
		r.clientCPU = r.ClientCPU
		if r.serverCPU >= 0 && stdout.begun {
			r.serverCPU -= stdout.at - before
		}
	}
	return r, nil
}

// noticed is the output of a process. It reads the server's CPU time when the process reports that its work
// begins.
type noticed struct {
	bytes.Buffer
	begins func() float64
	begun  bool
	at     float64
}

func (n *noticed) Write(text []byte) (int, error) {
	if !n.begun && bytes.Contains(text, []byte(`{"begins": true}`)) {
		n.begun, n.at = true, n.begins()
	}
	return n.Buffer.Write(text)
}

// watch waits for a process, and returns its peak RSS. (The value of wait(2) begins with the memory of the
// driver.)
func watch(ctx context.Context, p *os.Process, done <-chan error) (peak int64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runTime, fmt.Errorf("it takes more than %v", runTime))
	defer cancel()
	tick := time.NewTicker(peakEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return peak, err
		case <-tick.C:
			peak = max(peak, peakOf(p.Pid))
		case <-ctx.Done():
			return peak, errors.Join(context.Cause(ctx), p.Kill(), <-done)
		}
	}
}

// peakOf is the high-water mark of the RSS of a process; 0 means that it is
// over, or has not begun.
func peakOf(pid int) int64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	_, after, found := strings.Cut(string(text), "VmHWM:")
	if !found {
		return 0
	}
	kb, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseInt(kb, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

func wasKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
