package exception

import (
	"errors"
	"syscall"
)

// IsStorage reports an error of the storage, not of an item: a disk that is full, over quota, read-only
// or broken, a file beyond the largest size. The engine neither retries such work nor skips or splits
// for it, whatever is configured (rule C15b): every further item would fail too.
func IsStorage(err error) bool {
	for _, code := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EROFS} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
