package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	memory = "/dev/shm"
	// minFree is the room, in bytes, that all tests together need by far.
	minFree = 4 << 30
	noExec  = 0x8 // ST_NOEXEC of statfs: tests run programs that they build
)

// scratch makes a folder for temporary files in memory: nothing there waits for a
// disk, and a process that is killed loses nothing that it wrote. "" where there is
// no room. What runs that were killed left behind is removed.
func scratch() (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil || fs.Flags&noExec != 0 {
		return "", nil
	}
	left, err := filepath.Glob(filepath.Join(memory, "surfin-tests-*-*"))
	if err != nil {
		return "", fmt.Errorf("look into %s: %w", memory, err)
	}
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(dir), "-")[2])
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir) //nolint:errcheck // another user's stays
		}
	}
	if fs.Bavail*uint64(fs.Bsize) < minFree { //nolint:gosec // a size of blocks is positive
		return "", nil
	}
	dir, err := os.MkdirTemp(memory, fmt.Sprintf("surfin-tests-%d-", os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("folder for temporary files: %w", err)
	}
	return dir, nil
}
