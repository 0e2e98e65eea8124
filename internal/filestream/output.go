package filestream

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// PartSuffix is appended to the name of a file that is not complete yet.
const PartSuffix = ".part"

// OutputConfig says what is written, and how.
type OutputConfig struct {
	Path        string
	Compression string // auto (or empty), none, gzip: one gzip member per commit
	// Trailer ends the file; it is written by Finish.
	Trailer []byte
}

// OutputPosition is what of a file is committed, part of a writer's
// core.Position.
type OutputPosition struct {
	Offset int64 `json:"offset"` // bytes of the file, compressed where it is
	// Sum is the CRC-32C of these bytes. It tells after a crash whether the file in
	// view is the one that this step finished.
	Sum uint32 `json:"sum"`
}

// Output is a file that comes into view when it is complete (rule C15).
//
// It is written as PATH.part. Sync makes what was written so far survive a
// crash; Open and Rewind cut the file back to what a position covers; Finish
// renames it to PATH, replacing what was there. It is not safe for concurrent
// use.
type Output struct {
	cfg      OutputConfig
	file     *os.File
	gz       *gzip.Writer
	inMember bool // gz has an unfinished member
	at       OutputPosition
	dirty    bool            // bytes since the last Sync
	body     *OutputPosition // the end without the trailer, once Finish began
	finished bool
}

// NewOutput returns an output that is not open yet.
func NewOutput(cfg OutputConfig) *Output { return &Output{cfg: cfg} }

// Open starts the file anew where at is nil, or goes on behind at. Where the
// step crashed after Finish had renamed the file, Open finds that out, and
// Finished reports it. A PATH.part that is missing or too short is an error.
func (o *Output) Open(at *OutputPosition) error {
	if info, err := os.Stat(o.cfg.Path); err == nil && info.IsDir() {
		return fmt.Errorf("%s: it is a directory", absolute(o.cfg.Path))
	}
	dir := filepath.Dir(o.cfg.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return pathError(dir, err)
	}
	flags := os.O_RDWR
	if at == nil {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(o.part(), flags, 0o644)
	if err != nil {
		if at != nil && errors.Is(err, fs.ErrNotExist) {
			return o.resumeFinished(*at)
		}
		return pathError(o.part(), err)
	}
	o.file = file
	if at == nil {
		at = &OutputPosition{}
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return o.cut(*at)
}

func (o *Output) part() string { return o.cfg.Path + PartSuffix }

// cut makes at the end of the file.
func (o *Output) cut(at OutputPosition) error {
	info, err := o.file.Stat()
	if err != nil {
		return pathError(o.part(), err)
	}
	if info.Size() < at.Offset {
		return fmt.Errorf("cannot restart: %s has %d bytes, but %d were committed: it was changed or replaced", absolute(o.part()), info.Size(), at.Offset)
	}
	if err := o.file.Truncate(at.Offset); err != nil {
		return pathError(o.part(), err)
	}
	if _, err := o.file.Seek(at.Offset, io.SeekStart); err != nil {
		return pathError(o.part(), err)
	}
	o.dirty = o.dirty || info.Size() != at.Offset
	o.at, o.inMember, o.body = at, false, nil
	return nil
}

// resumeFinished decides what a missing PATH.part means: the file in view is
// what was committed with the trailer behind it, or the part is lost.
func (o *Output) resumeFinished(at OutputPosition) error {
	lost := fmt.Errorf("cannot restart: %s is gone, with the %d bytes that were committed", absolute(o.part()), at.Offset)
	file, err := os.Open(o.cfg.Path)
	if err != nil {
		return lost
	}
	defer file.Close() //nolint:errcheck // it was only read
	sum := crc32.New(castagnoli())
	if n, err := io.CopyN(sum, file, at.Offset); err != nil || n != at.Offset || sum.Sum32() != at.Sum {
		return lost
	}
	rest, err := io.ReadAll(io.LimitReader(file, int64(len(o.cfg.Trailer))+4096))
	if err != nil {
		return pathError(o.cfg.Path, err)
	}
	if o.compressed() && len(rest) > 0 {
		if rest, err = gunzip(rest); err != nil {
			return lost
		}
	}
	if !bytes.Equal(rest, o.cfg.Trailer) {
		return lost
	}
	o.at, o.finished = at, true
	return nil
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (o *Output) compressed() bool { return gzipped(o.cfg.Path, o.cfg.Compression) }

// Finished reports that the file is in view and complete.
func (o *Output) Finished() bool { return o.finished }

// Write appends to the file.
func (o *Output) Write(p []byte) (int, error) {
	if o.finished {
		return 0, fmt.Errorf("%s is complete already: it was renamed into view before the restart", absolute(o.cfg.Path))
	}
	if o.file == nil {
		return 0, fmt.Errorf("%s: %w", absolute(o.part()), fs.ErrClosed)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !o.compressed() {
		return o.append(p)
	}
	if !o.inMember {
		if o.gz == nil {
			o.gz = gzip.NewWriter(appender{o})
		} else {
			o.gz.Reset(appender{o})
		}
		o.inMember = true
	}
	return o.gz.Write(p)
}

type appender struct{ o *Output }

func (a appender) Write(p []byte) (int, error) { return a.o.append(p) }

func (o *Output) append(p []byte) (int, error) {
	n, err := o.file.Write(p)
	o.at.Sum = crc32.Update(o.at.Sum, castagnoli(), p[:n])
	o.at.Offset += int64(n)
	o.dirty = true
	if err != nil {
		return n, pathError(o.part(), err)
	}
	return n, nil
}

// castagnoli answers the same table each time.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Sync ends the gzip member and makes all that was written survive a crash. It
// costs nothing if nothing was written since the last one.
func (o *Output) Sync() error {
	if o.finished {
		return nil
	}
	if o.file == nil {
		return fmt.Errorf("%s: %w", absolute(o.part()), fs.ErrClosed)
	}
	if o.inMember {
		if err := o.gz.Close(); err != nil {
			return err
		}
		o.inMember = false
	}
	if !o.dirty {
		return nil
	}
	if err := o.file.Sync(); err != nil {
		return pathError(o.part(), err)
	}
	o.dirty = false
	return nil
}

// Position returns the end of the file. It is right after Sync, before the next
// Write.
func (o *Output) Position() OutputPosition {
	if o.body != nil {
		return *o.body
	}
	return o.at
}

// Rewind forgets what was written behind at; nil forgets all.
func (o *Output) Rewind(at *OutputPosition) error {
	if o.finished || o.file == nil {
		return fmt.Errorf("%s: %w", absolute(o.part()), fs.ErrClosed)
	}
	if at == nil {
		at = &OutputPosition{}
	}
	return o.cut(*at)
}

// Finish writes the trailer and renames the file into view. It may be called
// again, also after it failed.
func (o *Output) Finish() error {
	dir := filepath.Dir(o.cfg.Path)
	if o.finished {
		return syncDir(dir)
	}
	if o.body != nil {
		if err := o.Rewind(o.body); err != nil {
			return err
		}
	}
	if err := o.Sync(); err != nil {
		return err
	}
	body := o.at
	o.body = &body
	if err := o.end(); err != nil {
		return err
	}
	if err := o.Sync(); err != nil {
		return err
	}
	// Renamed while open: some systems refuse, so it is closed first and opened
	// again where the rename fails, for another Finish.
	if err := o.file.Close(); err != nil {
		return pathError(o.part(), err)
	}
	o.file = nil
	if err := os.Rename(o.part(), o.cfg.Path); err != nil {
		return errors.Join(pathError(o.cfg.Path, err), o.reopen(body))
	}
	o.finished = true
	return syncDir(dir)
}

// reopen undoes the part of Finish that was done.
func (o *Output) reopen(body OutputPosition) error {
	file, err := os.OpenFile(o.part(), os.O_RDWR, 0)
	if err != nil {
		return pathError(o.part(), err)
	}
	o.file = file
	return o.cut(body)
}

// end writes the trailer. A gzip file without any member would not be one.
func (o *Output) end() error {
	if len(o.cfg.Trailer) > 0 || !o.compressed() || o.at.Offset > 0 {
		_, err := o.Write(o.cfg.Trailer)
		return err
	}
	o.dirty = true
	return gzip.NewWriter(appender{o}).Close()
}

// Close closes the file. PATH.part stays, for a restart.
func (o *Output) Close() error {
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	o.file = nil
	if err != nil {
		return pathError(o.part(), err)
	}
	return nil
}

// syncDir makes a new name in dir survive a crash. Windows has no such call, and
// keeps names in order by itself.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return pathError(dir, err)
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return pathError(dir, err)
	}
	return nil
}
