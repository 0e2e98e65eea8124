//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import (
	"fmt"
	"os"
)

// takeRoom makes a folder with a new name each time: there Go's test cache finds nothing.
func takeRoom(parent string) (dir string, leave func() error, err error) {
	dir, err = os.MkdirTemp(parent, "surfin-tests-")
	if err != nil {
		return "", nil, fmt.Errorf("folder for temporary files: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
