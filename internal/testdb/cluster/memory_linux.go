package main

import "syscall"

const (
	shm = "/dev/shm"
	// minFree is amply sufficient for all tests together, in bytes.
	minFree = 4 << 30
	noExec  = 0x8 // ST_NOEXEC of statfs: tests run programs that they build
)

// memory returns a folder in memory: its files need not wait for a disk, and a killed process loses no
// written data. It returns "" if there is no room.
func memory() string {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm, &fs); err != nil || fs.Flags&noExec != 0 {
		return ""
	}
	if fs.Bavail*uint64(fs.Bsize) < minFree { //nolint:gosec // a size of blocks is positive
		return ""
	}
	return shm
}
