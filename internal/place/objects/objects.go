// Package objects is a place in an object store: files are objects, and an unpublished one is a folder of
// objects, one for each commit (rule OB2).
//
// It imports place and urlpath.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
)

// Object is a stored object.
type Object struct {
	Key      string
	Size     int64
	Modified time.Time
	// Tag names its content: another content has another tag.
	Tag string
	// Part is the part that it was published from; only Head has it.
	Part string
}

// Upload is an object that is put together and not complete.
type Upload struct {
	Key, ID string
	// Pieces that it has, or -1 if unknown.
	Pieces int
	Begun  time.Time
}

// ErrChanged reports that an object has not the content any more that was asked for.
var ErrChanged = errors.New("the object was replaced")

// Store is one bucket. fs.ErrNotExist is in the chain of its errors if an object or an upload does not exist. It
// repeats requests itself while the store is away for a moment.
type Store interface {
	Head(ctx context.Context, key string) (Object, error)
	// Get reads the content of the tag from an offset to the end; of another content, ErrChanged is in the chain.
	Get(ctx context.Context, of Object, from int64) (io.ReadCloser, error)
	// List calls each for all objects with a prefix of the key, by key.
	List(ctx context.Context, prefix string, each func(Object) error) error
	// Folders are the keys up to the next slash after the prefix.
	Folders(ctx context.Context, prefix string) ([]string, error)
	Put(ctx context.Context, key string, data []byte) error
	Remove(ctx context.Context, key string) error

	// Begin begins an object that is put together; Head has the part when it is complete.
	Begin(ctx context.Context, key, part string) (upload string, err error)
	// Copy makes an object piece n, which counts from 1; the store does it. Send sends one.
	Copy(ctx context.Context, key, upload string, n int, from Object) (tag string, err error)
	Send(ctx context.Context, key, upload string, n int, data []byte) (tag string, err error)
	Complete(ctx context.Context, key, upload string, tags []string) error
	// Abort ends an upload until none of its pieces is left.
	Abort(ctx context.Context, key, upload string) error
	// Uploads lists the ones to keys with a prefix.
	Uploads(ctx context.Context, prefix string) ([]Upload, error)
}

// New returns the place of a store's buckets.
func New(bucket func(name string) Store) place.Keeper { return &objects{bucket} }

type objects struct{ bucket func(name string) Store }

func (o *objects) at(url string) (Store, string, error) {
	text, err := urlpath.Text(url)
	if err != nil {
		return nil, "", err
	}
	_, rest, _ := strings.Cut(text, "://")
	bucket, key, _ := strings.Cut(rest, "/")
	return o.bucket(bucket), key, nil
}

func (o *objects) Stat(ctx context.Context, url string) (place.Info, error) {
	store, key, err := o.at(url)
	if err != nil {
		return place.Info{}, err
	}
	found, err := store.Head(ctx, key)
	if err != nil {
		return place.Info{}, err
	}
	return info(url, found), nil
}

func (o *objects) Remove(ctx context.Context, file place.Info) error {
	store, key, err := o.at(file.Path)
	if err != nil {
		return err
	}
	found, err := store.Head(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info(file.Path, found) != file:
		return place.ErrReplaced
	}
	return store.Remove(ctx, key)
}

func info(url string, o Object) place.Info {
	return place.Info{Path: url, Size: o.Size, Modified: o.Modified.UTC().Truncate(time.Microsecond), Version: o.Tag}
}

func (o *objects) Open(ctx context.Context, url string) (place.File, error) {
	store, key, err := o.at(url)
	if err != nil {
		return nil, err
	}
	found, err := store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	return &file{ctx: ctx, store: store, url: url, object: found}, nil
}

// Find lists below the folder before the first wildcard: a bucket is not listed whole where that can be left out.
func (o *objects) Find(ctx context.Context, pattern string) ([]place.Info, error) {
	store, key, err := o.at(pattern)
	if err != nil {
		return nil, err
	}
	if _, err := path.Match(key, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	prefix := key
	if i := strings.IndexAny(key, `*?[\`); i >= 0 {
		prefix = key[:i]
	}
	base := pattern[:len(pattern)-len(key)]
	var list []place.Info
	err = store.List(ctx, prefix, func(found Object) error {
		// A name that is written like a part is no file yet.
		if is, _ := path.Match(key, found.Key); is && !strings.HasSuffix(found.Key, "/") { //nolint:errcheck // it was matched above
			list = append(list, info(base+found.Key, found))
		}
		return nil
	})
	slices.SortFunc(list, func(a, b place.Info) int { return strings.Compare(a.Path, b.Path) })
	return list, err
}

type file struct {
	ctx    context.Context
	store  Store
	url    string
	object Object
	head   []byte // the first bytes, which are read more than once
}

const headBytes = 64 << 10

func (f *file) Opened() place.Info { return info(f.url, f.object) }

func (f *file) Now() (place.Info, error) {
	now, err := f.store.Head(f.ctx, f.object.Key)
	if err != nil {
		return place.Info{}, err
	}
	return info(f.url, now), nil
}

func (f *file) Close() error { return nil }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.object.Size {
		return 0, io.EOF
	}
	if f.head == nil {
		head := make([]byte, min(headBytes, f.object.Size))
		if err := f.fill(head, 0); err != nil {
			return 0, err
		}
		f.head = head
	}
	want := p[:min(int64(len(p)), f.object.Size-off)]
	if off+int64(len(want)) <= int64(len(f.head)) {
		copy(want, f.head[off:])
	} else if err := f.fill(want, off); err != nil {
		return 0, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

func (f *file) fill(p []byte, off int64) error {
	in := f.From(off)
	_, err := io.ReadFull(in, p)
	return errors.Join(err, in.Close())
}

func (f *file) From(offset int64) io.ReadCloser { return &stream{file: f, at: offset} }

// stream reads an object, and opens it again where a connection has ended: stores close those that wait for a slow
// chunk.
type stream struct {
	file   *file
	at     int64
	body   io.ReadCloser
	failed time.Time // of the first failure since bytes came
}

// patience is how long a store may be away.
const (
	patience = 30 * time.Second
	pause    = 250 * time.Millisecond
)

func (s *stream) Read(p []byte) (int, error) {
	of := s.file.object
	for {
		if s.at >= of.Size {
			return 0, io.EOF
		}
		n, err := s.once(p[:min(int64(len(p)), of.Size-s.at)])
		s.at += int64(n)
		if n > 0 {
			s.failed = time.Time{}
			return n, nil
		}
		if err == nil {
			continue
		}
		if err := s.again(err); err != nil {
			return 0, err
		}
	}
}

func (s *stream) once(p []byte) (int, error) {
	if s.body == nil {
		body, err := s.file.store.Get(s.file.ctx, s.file.object, s.at)
		if err != nil {
			return 0, err
		}
		s.body = body
	}
	n, err := s.body.Read(p)
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return n, err
}

func (s *stream) again(err error) error {
	ctx := s.file.ctx
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrChanged), errors.Is(err, fs.ErrNotExist):
		return s.replaced(err)
	case s.failed.IsZero():
		s.failed = time.Now()
	case time.Since(s.failed) > patience:
		return fmt.Errorf("at byte %d: %w", s.at, err)
	}
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return nil
	}
}

// replaced names both contents.
func (s *stream) replaced(err error) error {
	was := s.file.object
	now, headErr := s.file.store.Head(s.file.ctx, was.Key)
	if headErr != nil {
		return fmt.Errorf("it was read to byte %d and is gone: %w", s.at, err)
	}
	return fmt.Errorf("it was replaced while it was read: %d bytes were read of %s (%d bytes), and now it is %s (%d bytes): %w",
		s.at, was.Tag, was.Size, now.Tag, now.Size, err)
}

func (s *stream) Close() error {
	if s.body == nil {
		return nil
	}
	body := s.body
	s.body = nil
	return body.Close()
}
