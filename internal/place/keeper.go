package place

import (
	"context"
	"errors"
	"io"
)

// ErrSuperseded reports that a part cannot be published any more: a later attempt or execution has published the
// file, or the part was removed.
var ErrSuperseded = errors.New("a later attempt or another execution has taken the file over, or someone has removed it")

// ErrReplaced reports that a file is not as it was described.
var ErrReplaced = errors.New("it was replaced meanwhile")

// KeeperOf is the place of a URL, if files can be written there.
func KeeperOf(ctx context.Context, path string) (Keeper, error) {
	in, err := Of(ctx, path)
	if err != nil {
		return nil, err
	}
	k, is := in.(Keeper)
	if !is {
		return nil, errors.New("files of this place can only be read")
	}
	return k, nil
}

// Keeper is a place without locks, in which files are written in parts: nothing of a part is under the name of its
// file before it is published. The suffix of a part is part of no other attempt's.
type Keeper interface {
	Place
	// Remove removes a file if it is still as described, else ErrReplaced is in the chain of its error. A missing one
	// is not an error.
	Remove(ctx context.Context, file Info) error
	// Parts returns the suffixes of the parts of a file, sorted.
	Parts(ctx context.Context, path string) ([]string, error)
	// Create begins a part. It is written while ctx lasts.
	Create(ctx context.Context, path, part string) (Part, error)
	// Resume continues the part of a mark, without the rest: in the part itself if into is empty, else in a new
	// part of another path or attempt, to which the content is copied. fs.ErrNotExist is in the chain of its error
	// if the part is gone, and a *ContentError if it is not as marked.
	Resume(ctx context.Context, from Marked, path, into string) (Part, error)
	// Withdraw removes a part, and ends its publication, which cannot be completed any more.
	Withdraw(ctx context.Context, path, part string) error
	// Published returns the part that the file was published from; empty if it is none of ours.
	Published(ctx context.Context, path string) (part string, err error)
	// Cancel ends a publication that was begun, and reports whether there was one: it may have been completed.
	Cancel(ctx context.Context, path, part, token string) (ended bool, err error)
}

// Marked are the first bytes of a part.
type Marked struct {
	Path, Part string
	Size       int64
	Sum        uint32 // CRC-32C
}

// ContentError reports that a part is not as it was marked.
type ContentError struct{ Difference string }

// Error says how it differs.
func (e *ContentError) Error() string { return e.Difference }

// Part is a file that is not published yet. It is not safe for concurrent use.
type Part interface {
	// Write appends. The bytes may be lost before Sync.
	io.Writer
	// ReadAt reads bytes that Sync has made safe.
	io.ReaderAt
	// Take appends the bytes of a finished part after the first skip ones, which have the checksum head. It fails as
	// Resume does.
	Take(from Marked, skip int64, head uint32) error
	// Cut keeps the first bytes only.
	Cut(size int64, sum uint32) error
	// Sync makes written bytes survive a crash.
	Sync() error
	// Kept follows the commit of a position after Sync.
	Kept(ctx context.Context) error
	// Stage prepares the publication of all that is written. Its token must be committed before Publish.
	Stage(ctx context.Context) (token string, err error)
	// Publish gives the file its content. It may be called again. ErrSuperseded is in the chain of its error if
	// another publication ended this one.
	Publish(ctx context.Context, token string) error
	// Close releases the part. A part that a later attempt has superseded is removed; named: a
	// position may name the part.
	Close(named bool) error
}
