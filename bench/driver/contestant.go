package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Contestant does the work of a workload in one way, in a separate process.
type Contestant interface {
	// Name is the contestant's name in the tables; it is unique in the workload.
	Name() string
	// Command is the process that does the work once. It ends with exit code 0 if all is done.
	Command(w Work) (*exec.Cmd, error)
	// Result parses the output of the process.
	Result(stdout []byte) (Result, error)
	// Restarts reports whether the work is also done correctly by a second
	// process after the first one was killed.
	Restarts() bool
}

// Peer is a contestant that needs more than Go and PostgreSQL: it runs only with -peers.
type Peer interface {
	Contestant
	// Build builds the program that Command runs, for all contestants of its type.
	Build(ctx context.Context, b *bench) error
}

// asked is a contestant without a process of its own: the driver asks a server that runs meanwhile.
type asked interface {
	Contestant
	// Ask does the work once.
	Ask(ctx context.Context, b *bench) (Result, error)
}

// Workload is some work, the ways to do it, and the check that it was done.
type Workload struct {
	// Name is short (w1); Title is a line.
	Name, Title string
	// Share is the part of -size that it has in rows; 0 means 1.
	Share float64
	// Most is the most rows that it has; 0 means any number.
	Most int
	// Rounds is the most rounds that it has, also those of its targets; 0 means any number.
	Rounds int
	// Part means that the time does not cover all rows.
	Part bool
	// Metric is the value compared with the floor; empty means speed.
	Metric metric
	// Contestants are the ways; the first one is the floor.
	Contestants []Contestant
	// Prepare makes the common input of all runs; nil means none.
	Prepare func(ctx context.Context, b *bench, w *Work) error
	// Clear makes the state before a run; nil means only an empty folder.
	Clear func(ctx context.Context, b *bench, w Work) error
	// Check returns the mistake in the work of a run.
	Check func(ctx context.Context, w Work, r Result) error
}

type metric string

const (
	speed   metric = ""               // the time of the work: 0.5 is half as fast as the floor
	memory  metric = "memory"         // peak RSS: 2 is twice the floor's
	started metric = "time of a call" // the time of the whole process: 0.5 takes twice as long
)

const workVariable = "SURFIN_BENCH_WORK"

// Work is the order for a process.
type Work struct {
	Workload   string `json:"workload"`
	Contestant string `json:"contestant"`
	Rows       int    `json:"rows"`
	// Dir is a folder of the run's own.
	Dir string `json:"dir"`
	// Input is the csv file with the rows; Sum is the sum of its lines.
	Input string `json:"input"`
	Sum   uint64 `json:"sum"`
	// URL is the URL of the run's database; empty means none.
	URL string `json:"url,omitempty"`
	// Keep means that all runs have one database.
	Keep bool `json:"keep,omitempty"`
	// KillAt asks the process to kill itself soon after it has committed that
	// many rows; 0 means not.
	KillAt int64 `json:"kill_at,omitempty"`
	// Again means that the previous process has not completed the work: this one continues.
	Again bool `json:"again,omitempty"`
	// River is the engine of the runtime; Worker asks the process to be only a worker.
	River  bool `json:"river,omitempty"`
	Worker bool `json:"worker,omitempty"`
	// Loops asks the process to be that many idle workers, with a lease of Lease.
	Loops int           `json:"loops,omitempty"`
	Lease time.Duration `json:"lease,omitempty"`
	// Serve asks the process to be surfin serve, and Tick to run the job that is watched.
	Serve bool `json:"serve,omitempty"`
	Tick  bool `json:"tick,omitempty"`
}

// Result is a process's report of its work: a line of JSON on its standard output.
type Result struct {
	// Seconds is the time of the work, without the start of the process.
	Seconds float64 `json:"seconds"`
	// ClientCPU is the CPU time of the work in seconds, if the process has done more than that; 0 means the
	// time of the process. The process prints the line {"begins": true} before the work.
	ClientCPU float64 `json:"client_cpu,omitempty"`
	// Found is a row that was asked for.
	Found string `json:"found,omitempty"`
	// Status is how the execution ended, if requested, Cause why, and Skipped how many items all its attempts
	// have skipped.
	Status  string `json:"status,omitempty"`
	Cause   string `json:"cause,omitempty"`
	Skipped int    `json:"skipped,omitempty"`
	// Bytes and Requests are of answers; Rows is the most that a statement reads, Rate is the number of statements
	// in a second, and Cores the part of a core that a server needs.
	Bytes    int     `json:"bytes,omitempty"`
	Requests int     `json:"requests,omitempty"`
	Rows     int     `json:"rows,omitempty"`
	Rate     float64 `json:"rate,omitempty"`
	Cores    float64 `json:"cores,omitempty"`
}

func parseResult(stdout []byte) (Result, error) {
	lines := bytes.Split(bytes.TrimSpace(stdout), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if bytes.HasPrefix(line, []byte("{")) {
			var r Result
			return r, json.Unmarshal(line, &r)
		}
	}
	return Result{}, fmt.Errorf("it printed no result: %q", stdout)
}

// inside is a contestant in Go: the driver is its process.
type inside struct {
	name     string
	restarts bool
	run      func(ctx context.Context, w Work) (Result, error)
}

func (c inside) Name() string { return c.name }

func (c inside) Restarts() bool { return c.restarts }

func (c inside) Result(stdout []byte) (Result, error) { return parseResult(stdout) }

func (c inside) Command(w Work) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return withWork(exec.Command(self), w)
}

func withWork(cmd *exec.Cmd, w Work) (*exec.Cmd, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd.Dir = w.Dir
	cmd.Env = append(os.Environ(), workVariable+"="+string(text))
	return cmd, nil
}

func runChild(text string) int {
	r, err := childResult(text)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childResult(text string) (Result, error) {
	var w Work
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return Result{}, fmt.Errorf("%s: %w", workVariable, err)
	}
	switch {
	case w.Loops > 0:
		return Result{}, workInLoops(context.Background(), w)
	case w.Worker:
		return Result{}, takeParts(context.Background(), w)
	case w.Serve:
		return Result{}, serveConsole(w)
	case w.Tick:
		return Result{}, tickUntilStopped(context.Background(), w)
	}
	for _, of := range slices.Concat(workloads(), loseWorkloads()) {
		if of.Name != w.Workload {
			continue
		}
		for _, c := range of.Contestants {
			if c, ok := c.(inside); ok && c.name == w.Contestant {
				return c.run(context.Background(), w)
			}
		}
	}
	return Result{}, fmt.Errorf("%s has no contestant %q", w.Workload, w.Contestant)
}

// psql is the client of PostgreSQL with one command, which prints its time itself.
type psql struct {
	name    string
	command func(w Work) string
}

var psqlTime = regexp.MustCompile(`(?m)^Time: ([0-9.]+) ms`)

func (c psql) Name() string { return c.name }

func (c psql) Restarts() bool { return false }

func (c psql) Command(w Work) (*exec.Cmd, error) {
	program, err := exec.LookPath("psql")
	if err != nil {
		return nil, fmt.Errorf("the floor needs psql (Debian: apt-get install postgresql-client): %w", err)
	}
	cmd := exec.Command(program, "-X", "-v", "ON_ERROR_STOP=1", "-d", w.URL, "-c", `\timing on`, "-c", c.command(w))
	cmd.Dir = w.Dir
	return cmd, nil
}

func (c psql) Result(stdout []byte) (Result, error) {
	found := psqlTime.FindSubmatch(stdout)
	if found == nil {
		return Result{}, errors.New("psql printed no time")
	}
	ms, err := strconv.ParseFloat(string(found[1]), 64)
	return Result{Seconds: ms / 1000}, err
}
