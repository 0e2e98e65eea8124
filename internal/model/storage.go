package model

import (
	"errors"
	"syscall"
)

// IsStorage reports whether the disk is full, over quota, read-only or broken, or a file too large. Never
// retried, skipped or split (rule C15b): further items would fail too.
func IsStorage(err error) bool {
	for _, code := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EROFS} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
