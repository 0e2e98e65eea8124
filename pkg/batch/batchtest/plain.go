package batchtest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

var plainProgram = sync.OnceValues(buildPlain)

// Hundreds of processes are ten times as slow with the race detector, and no kill finds more.
func runPlain(t *testing.T) {
	t.Helper()
	program, err := plainProgram()
	if err != nil {
		t.Fatalf("batchtest: %v", err)
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), program.Fd())
	args := []string{"-test.run", only(t.Name()), "-test.count=1", "-test.v"}
	for _, name := range []string{"test.short", "test.parallel"} {
		if f := flag.Lookup(name); f != nil {
			args = append(args, "-"+name+"="+f.Value.String())
		}
	}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout", time.Until(end).String())
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput() //nolint:gosec // ourselves
	switch {
	case err != nil:
		t.Fatalf("without the race detector: %v\n%s", err, out)
	case !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")):
		t.Fatalf("batchtest: is CrashEverywhere reached whenever the test %s runs alone?\n%s", t.Name(), out)
	}
	t.Logf("without the race detector:\n%s", out)
}

// The file's name is removed at once, since the last use is not known: the process keeps it open.
func buildPlain() (program *os.File, err error) {
	dir, err := os.MkdirTemp("", "batchtest-")
	if err != nil {
		return nil, fmt.Errorf("folder of a test binary: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, filepath.Base(os.Args[0]))
	args := []string{"test", "-c", "-race=false", "-vet=off", "-o", file}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				args = append(args, "-tags", s.Value)
			}
		}
	}
	cmd := exec.Command("go", append(args, ".")...) //nolint:gosec // the package under test, in whose folder tests run
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build this test without the race detector: %w\n%s", err, out)
	}
	program, err = os.Open(file) //nolint:gosec // just made
	if err != nil {
		return nil, fmt.Errorf("open the test binary: %w", err)
	}
	return program, nil
}
