package filestream

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Whole is a file of a format that is read at any offset, and that means nothing in part.
type Whole struct {
	place.File
	Print Fingerprint
	path  string
}

// OpenWhole opens a file. If an earlier attempt read it, it must be the same (*ChangedError).
func OpenWhole(ctx context.Context, path string, before *Fingerprint) (*Whole, error) {
	file, err := place.Open(ctx, path)
	if err != nil {
		return nil, pathError(path, err)
	}
	print, err := fingerprint(file)
	if err != nil {
		return nil, errors.Join(pathError(path, err), file.Close())
	}
	if before != nil {
		if what := changed(*before, print); what != "" {
			return nil, errors.Join(&ChangedError{Path: absolute(path), What: what}, file.Close())
		}
	}
	return &Whole{file, print, path}, nil
}

// Unchanged fails if the file is another one than when it was opened, which also makes its content invalid.
func (w *Whole) Unchanged() error {
	now, err := w.Now()
	if err != nil {
		return pathError(w.path, err)
	}
	if opened := w.Opened(); now.Size != opened.Size || !now.Modified.Equal(opened.Modified) {
		return exception.Fatal("", fmt.Errorf("%s changed while it was read: it had %d bytes when it was opened, and now has %d", absolute(w.path), opened.Size, now.Size))
	}
	return nil
}
