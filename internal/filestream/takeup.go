package filestream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
)

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
	file, err := o.files.Open(path)
	if err != nil {
		return lost
	}
	defer file.Close() //nolint:errcheck // it is only read
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
	if o.compressed() && len(rest) > 0 {
		if rest, err = o.decompressed(rest); err != nil {
			return lost
		}
	}
	if !bytes.Equal(rest, o.cfg.Trailer) || o.compareForm(at, o.form()) != nil {
		return lost
	}
	o.at, o.finished = at, true
	return nil
}

func (o *Output) decompressed(data []byte) ([]byte, error) {
	r, free, err := o.compression().read(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if free != nil {
		defer free()
	}
	return io.ReadAll(r)
}
