package filestream

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func (o *Output) copyTarget(ctx context.Context) error {
	if o.cfg.Append == nil {
		return nil
	}
	o.at.Base = &Base{}
	file, err := openPart(o.files, o.cfg.Path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return pathError(o.cfg.Path, err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	info, err := file.Stat()
	if err != nil {
		return pathError(o.cfg.Path, err)
	}
	if err := o.file.Chmod(info.Mode().Perm()); err != nil {
		return pathError(o.name, err)
	}
	sum := crc32.New(castagnoli())
	n, err := io.Copy(io.MultiWriter(o.file, sum), reader{ctx, file})
	if err != nil {
		return fmt.Errorf("copy %s to append to it: %w", o.cfg.Path, err)
	}
	o.dirty = n > 0
	o.at.Offset, o.at.Sum = n, sum.Sum32()
	o.at.Base.Size, o.at.Base.Sum = n, o.at.Sum
	if n == 0 {
		return nil
	}
	if err := o.examine(ctx); err != nil {
		return exception.Fatal("", fmt.Errorf("cannot append: %w", err))
	}
	return o.endLine()
}

// A compressed file is read whole: nothing can follow a truncated one.
func (o *Output) examine(ctx context.Context) error {
	form, text := o.cfg.compression(), o.cfg.Append
	cfg := InputConfig{Path: o.name, As: o.cfg.Path, Compression: ReadCompression(form.name), Encoding: text.Encoding, Raw: text.Record > 0}
	in, err := OpenInput(ctx, cfg, nil)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it is only read
	if err := o.examineText(ctx, in); err != nil {
		return pathError(o.cfg.Path, err)
	}
	return nil
}

func (o *Output) examineText(ctx context.Context, in *Input) error {
	form, text := o.cfg.compression(), o.cfg.Append
	if err := in.fitsEncoding(text.Encoding); err != nil {
		return err
	}
	o.head = make([]byte, headBytes)
	n, err := io.ReadFull(in, o.head)
	o.head = o.head[:n]
	if failed := in.Failed(); failed != nil {
		return failed
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if form.name != "" || text.Record > 0 || text.Ends != nil {
		size, ended, err := in.measure(ctx, o.head, text.ends())
		if text.Record > 0 && size%int64(text.Record) != 0 {
			return fmt.Errorf("it has %d bytes, which is not a multiple of the record length %d", size, text.Record)
		}
		o.at.Base.Open = !ended && text.Record == 0
		if err != nil || form.name != "" || text.Record > 0 {
			return err
		}
	}
	end, err := encodedLineEnd(text.Encoding)
	if err != nil {
		return err
	}
	if o.at.Base.Size%int64(len(end)) != 0 {
		return errors.New("it ends in the middle of a character")
	}
	last := make([]byte, len(end))
	if _, err := o.file.ReadAt(last, o.at.Base.Size-int64(len(end))); err != nil {
		return err
	}
	o.at.Base.Open = string(last) != string(end)
	return nil
}

func (in *Input) measure(ctx context.Context, head []byte, ends *Ends) (size int64, ended bool, err error) {
	check := newEndsCheck(ends)
	check.add(head)
	last := byte('\n') // of an empty text
	if len(head) > 0 {
		last = head[len(head)-1]
	}
	buf := make([]byte, readBytes)
	for size = int64(len(head)); ; {
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		in.Keep(in.base + int64(in.pos))
		n, err := in.Read(buf)
		if n > 0 {
			last = buf[n-1]
		}
		check.add(buf[:n])
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return size, last == '\n', check.wrong()
		}
		if err != nil {
			return 0, false, err
		}
	}
}

// AppendTo describes text of lines with lineEnd, lf or crlf; nil if append is false.
func AppendTo(appends bool, encoding EncodingName, lineEnd string) (*Append, error) {
	if !appends {
		return nil, nil
	}
	enc, err := NewEncoder(encoding)
	if err != nil {
		return nil, err
	}
	end, err := enc.Append(nil, []byte(lineEnd))
	return &Append{Encoding: encoding, LineEnd: end}, err
}

func encodedLineEnd(name EncodingName) ([]byte, error) {
	enc, err := NewEncoder(name)
	if err != nil {
		return nil, err
	}
	return enc.Append(nil, []byte("\n"))
}

func (in *Input) fitsEncoding(name EncodingName) error {
	c, err := codecOf(name)
	if err != nil {
		return err
	}
	is := ""
	switch {
	case len(in.mark) >= 3 && string(in.mark) == "\xEF\xBB\xBF" && !c.utf8:
		is = "UTF-8"
	case len(in.mark) >= 2 && string(in.mark[:2]) == "\xFF\xFE" && c.units != "le":
		is = "UTF-16, little endian"
	case len(in.mark) >= 2 && string(in.mark[:2]) == "\xFE\xFF" && c.units != "be":
		is = "UTF-16, big endian"
	default:
		return nil
	}
	return fmt.Errorf("it begins with the byte order mark of %s, but encoding is %s", is, c.Name)
}

func (o *Output) endLine() error {
	if o.at.Base == nil || !o.at.Base.Open {
		return nil
	}
	_, err := o.Write(o.cfg.Append.LineEnd)
	return err
}

// Begun reports whether the file has text.
func (o *Output) Begun() bool { return o.at.Offset > 0 || o.finished }

// Appended returns the text in the file before this attempt; nil if empty or already checked.
func (o *Output) Appended() []byte { return o.head }

// checkBase refuses to replace a file that differs from the copied one: its changes would be lost.
func (o *Output) checkBase() error {
	base := o.at.Base
	if base == nil {
		return nil
	}
	if _, err := o.files.Lstat(o.name); errors.Is(err, fs.ErrNotExist) {
		return nil // the rename explains it
	}
	file, err := openPart(o.files, o.cfg.Path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if base.Size == 0 {
			return nil
		}
		return o.baseChanged("it is gone")
	}
	if err != nil {
		return pathError(o.cfg.Path, err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	sum := crc32.New(castagnoli())
	n, err := io.Copy(sum, file)
	switch {
	case err != nil:
		return pathError(o.cfg.Path, err)
	case n != base.Size:
		return o.baseChanged(fmt.Sprintf("it had %d bytes, and now has %d", base.Size, n))
	case sum.Sum32() != base.Sum:
		return o.baseChanged("its content is different")
	}
	return nil
}

func (o *Output) baseChanged(what string) error {
	return exception.Fatal("", fmt.Errorf("cannot append to %s: it changed since the step copied it: %s. The file is unchanged by this step, and the copy with the appended items is in %s; restart the step --from-start, which appends to the current file", o.cfg.Path, what, o.name))
}
