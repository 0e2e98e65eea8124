package filestream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/surfin-batch/surfin/internal/place"
)

const headBytes = 64 << 10

// Fingerprint detects whether a file is still the one that was read before.
type Fingerprint struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
	// Head is the hex SHA-256, shortened to 128 bits, of the first 64 KB.
	Head string `json:"head"`
	// Version is the content's name, where the place gives it one.
	Version string `json:"version,omitempty"`
}

// ChangedError refuses to continue in a file other than the one that was read.
type ChangedError struct {
	Path       string // absolute
	What       string // the change, such as "its size is 12 bytes, it was 10"
	Acceptable bool
	divided    bool
}

// Error describes the change.
func (e *ChangedError) Error() string {
	if e.divided {
		return fmt.Sprintf("%s changed since it was divided into parts: %s; remove the committed rows and start over (--from-start)", e.Path, e.What)
	}
	text := fmt.Sprintf("cannot restart: %s changed since it was read: %s", e.Path, e.What)
	if e.Acceptable {
		text += "; if only the data after that point was corrected, --accept-changes continues"
	}
	return text
}

func fingerprint(f place.File) (Fingerprint, error) {
	head := sha256.New()
	if _, err := io.Copy(head, io.NewSectionReader(f, 0, headBytes)); err != nil {
		return Fingerprint{}, err
	}
	opened := f.Opened()
	return Fingerprint{Size: opened.Size, ModTime: opened.Modified, Head: hex.EncodeToString(head.Sum(nil)[:16]), Version: opened.Version}, nil
}

func changed(before, now Fingerprint) string {
	switch {
	case now.Version != before.Version:
		return fmt.Sprintf("it is another version of %d bytes, %s (before: %s of %d bytes)", now.Size, now.Version, before.Version, before.Size)
	case now.Version != "": // another time of the same content is no change
		return ""
	case now.Size > before.Size:
		return fmt.Sprintf("it grew from %d to %d bytes", before.Size, now.Size)
	case now.Size < before.Size:
		return fmt.Sprintf("it shrank from %d to %d bytes", before.Size, now.Size)
	case now.Head != before.Head:
		return "its content is different"
	case !now.ModTime.Equal(before.ModTime):
		return fmt.Sprintf("it was modified at %s (before: %s)", now.ModTime.Format(time.RFC3339Nano), before.ModTime.Format(time.RFC3339Nano))
	}
	return ""
}
