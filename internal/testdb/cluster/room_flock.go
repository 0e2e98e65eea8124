//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const maxRooms = 100

// takeRoom makes a folder with the first name that no concurrent run has: Go's test cache compares
// the names.
func takeRoom(parent string) (dir string, leave func() error, err error) {
	base, err := ownFolder(parent)
	if err != nil {
		return "", nil, err
	}
	for n := 1; n <= maxRooms; n++ {
		room := filepath.Join(base, strconv.Itoa(n))
		lock, isNew, err := lockFile(room + ".lock")
		if err != nil {
			return "", nil, err
		}
		if lock == nil {
			continue // a run has it
		}
		if err := os.RemoveAll(room); err != nil || dir != "" {
			_ = lock.Close() //nolint:errcheck // what cannot be removed yet, a later run removes
		} else if err := os.Mkdir(room, 0o755); err != nil { //nolint:gosec // the server may be another user
			return "", nil, errors.Join(fmt.Errorf("folder for temporary files: %w", err), lock.Close())
		} else {
			dir, leave = room, func() error { return errors.Join(os.RemoveAll(room), lock.Close()) }
		}
		if dir != "" && isNew {
			return dir, leave, nil // there was none after it
		}
	}
	if dir == "" {
		return "", nil, fmt.Errorf("no folder in %s is free", base)
	}
	return dir, leave, nil
}

func ownFolder(parent string) (string, error) {
	base := filepath.Join(parent, "surfin-tests-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(base, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the server may be another user
		return "", fmt.Errorf("folder for temporary files: %w", err)
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", fmt.Errorf("folder for temporary files: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s is not a folder of this user: remove it", base)
	}
	return base, nil
}

// lockFile locks a file until closed; nil if another has it. The file stays: removing it could
// remove one that another process is locking.
func lockFile(path string) (lock *os.File, isNew bool, err error) {
	_, serr := os.Lstat(path)
	lock, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // in our own folder
	if err != nil {
		return nil, false, fmt.Errorf("lock of a folder for temporary files: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		} else {
			err = fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, false, errors.Join(err, lock.Close())
	}
	return lock, errors.Is(serr, fs.ErrNotExist), nil
}
