package filestream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// survey examines the files of other attempts next to PATH. A file locked by another step, instance
// or history, or by another writer of this attempt, refuses PATH. A lock of an earlier attempt of
// the same step does not, since a stopped process keeps its locks: its files are removed after the
// first commit.
func (o *Output) survey() error {
	step := whole(o.attempt).Scope()
	return eachPart(o.files, o.cfg.Path, func(name string, of owner) error {
		switch mine := of.scope == o.attempt.Scope(); {
		case mine && of.id < int64(o.attempt.ID):
			o.earlier = append(o.earlier, name)
		case !mine && of.step == step: // a part of the same step
		case isLocked(o.files, name):
			return fmt.Errorf("%s is being written by another execution, step, attempt or writer (%s is in use; if it is not, remove it)", o.cfg.Path, filepath.Base(name))
		case mine && of.id == int64(o.attempt.ID): // of a history that was restored from a backup
			o.earlier = append(o.earlier, name)
		}
		return nil
	})
}

// surveyLeft notes the files of earlier attempts with another path: such an attempt may wake, too.
func (o *Output) surveyLeft(at *OutputPosition) error {
	paths := map[string]bool{o.cfg.Path: true}
	needed := neededByOthers(o.attempt, at)
	note := func(path string) error {
		if path == "" || paths[path] {
			return nil
		}
		paths[path] = true
		o.files.Free(path) // an earlier attempt was admitted to it
		names, err := partsOf(o.files, path, func(of owner) bool {
			return of.scope == o.attempt.Scope() && of.id < int64(o.attempt.ID)
		})
		for _, name := range names {
			if !needed[name[len(path):]] {
				o.earlier = append(o.earlier, name)
			}
		}
		return err
	}
	var errs []error
	if at != nil {
		errs = append(errs, note(at.Path))
	}
	for _, left := range o.attempt.Left {
		var position OutputPosition
		if json.Unmarshal(left, &position) == nil { // else it is of a writer of another kind
			errs = append(errs, note(position.Path))
		}
	}
	return errors.Join(errs...)
}

func neededByOthers(attempt core.Attempt, at *OutputPosition) map[string]bool {
	needed := map[string]bool{}
	for _, from := range attempt.From {
		var position OutputPosition
		if json.Unmarshal(from, &position) == nil && (at == nil || position.Part != at.Part) {
			needed[position.Part] = true
		}
	}
	return needed
}

func (o *Output) source(at OutputPosition) (string, error) {
	var err error
	for _, path := range []string{o.cfg.Path, at.Path} {
		if path == "" {
			continue
		}
		if _, err = o.files.Lstat(path + at.Part); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path + at.Part, err
		}
	}
	return "", err
}

func (o *Output) takeUp(ctx context.Context, at OutputPosition) error {
	from, name, to := o.file, o.name, io.Discard
	if !o.named {
		var err error
		if name, err = o.source(at); err != nil {
			return fmt.Errorf("cannot restart: %w", pathError(name, err))
		}
		if from, err = openPart(o.files, name, os.O_RDONLY); err != nil {
			return pathError(name, err)
		}
		defer from.Close() //nolint:errcheck // it is only read
		to, o.dirty = io.Writer(o.file), true
	}
	sum := crc32.New(castagnoli())
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(reader{ctx, from}, at.Offset))
	switch {
	case err != nil:
		return pathError(name, err)
	case n < at.Offset:
		return fmt.Errorf("cannot restart: %s has %d bytes, but %d were committed: it was changed or replaced", name, n, at.Offset)
	case sum.Sum32() != at.Sum:
		return fmt.Errorf("cannot restart: the %d committed bytes of %s have changed since (their checksum is different)", at.Offset, name)
	}
	at.Path, at.Part = o.cfg.Path, o.part()
	return o.cut(at)
}

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// resumeFinished: if the part is missing, either the published file is the content followed by the
// trailer, or the part is lost.
func (o *Output) resumeFinished(at OutputPosition) error {
	path := o.cfg.Path
	lost := fmt.Errorf("cannot restart: %s is gone, with its %d committed bytes, and %s is not the file that the step would have published; restart with --from-start, or restore the file",
		path+at.Part, at.Offset, path)
	if isPart(o) { // it is published with the others, and is not run again then
		return lost
	}
	file, err := o.files.Open(path)
	if err != nil {
		return lost
	}
	defer file.Close() //nolint:errcheck // it is only read
	if at.Made != nil {
		if !at.Made.is(file) {
			return lost
		}
		o.at, o.finished = at, true
		return nil
	}
	sum := crc32.New(castagnoli())
	if n, err := io.CopyN(sum, file, at.Offset); err != nil || n != at.Offset || sum.Sum32() != at.Sum {
		return lost
	}
	if at.Base != nil { // others have appended the rest since
		o.at, o.finished = at, true
		return nil
	}
	rest, err := io.ReadAll(io.LimitReader(file, int64(len(o.cfg.Trailer))+4096))
	if err != nil {
		return pathError(path, err)
	}
	if o.cfg.compressed() && len(rest) > 0 {
		if rest, err = o.cfg.compression().decompressed(rest); err != nil {
			return lost
		}
	}
	if !bytes.Equal(rest, o.cfg.Trailer) || o.cfg.compareForm(at, o.cfg.form()) != nil {
		return lost
	}
	o.at, o.finished = at, true
	return nil
}
