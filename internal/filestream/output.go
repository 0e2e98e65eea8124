package filestream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Output is a file that is published when it is complete (rules C15, C15b). It is written as
// PATH.part.SCOPE-ATTEMPT-RANDOM, a name that no other attempt uses. Sync makes the content survive
// a crash; Open and Rewind cut the file back; Release, after a commit, removes the files of earlier
// attempts; Finish renames the file to PATH. A frozen attempt that wakes after a later one has
// committed finds its name gone, and can publish nothing. It is not safe for concurrent use.
type Output struct {
	cfg     OutputConfig
	disk    disk
	files   *confine.Files // of the context in which it was opened; nil means no restrictions
	attempt core.Attempt
	name    string // of the part
	file    *os.File
	std     *stdout // instead of file; nil means that it is a file
	kept    *kept   // instead of file, in a place other than the disk
	earlier []string
	// requested means that a position with the name was returned, and may be committed; named that one is.
	requested, named bool

	frames   frames // nil means not compressed, or that nothing is written yet
	inMember bool   // frames has an unfinished one
	at       OutputPosition
	taken    OutputPosition  // the position that Open continued from
	dirty    bool            // bytes since the last Sync
	head     []byte          // of the text that was there
	lost     bool            // of the part that at names nothing is needed
	body     *OutputPosition // the end without the trailer, once Finish began
	staged   bool            // body names the publication
	made     *product        // with a Maker, while it is open
	joined   Joined          // the parts that it takes, and removes when it is published; nil means none
	finished bool
}

// NewOutput returns an output that is not open yet.
func NewOutput(cfg OutputConfig) *Output { return &Output{cfg: cfg, disk: system{}} }

// Open starts a new file if at is nil. Else it continues: in the same file if its attempts are
// known to be over, in a copy if one may wake. Either way the bytes are compared with the checksum.
// After a crash following the rename in Finish, Finished reports it. It refuses a PATH that is not
// a regular file, one that another writer is writing, a file in another form, and a missing, short
// or changed part.
func (o *Output) Open(ctx context.Context, at *OutputPosition) error {
	if o.cfg.Path == core.StdPath {
		if o.cfg.Maker != nil {
			return errors.New("a file of this format is made when all items are written, and cannot be the standard output: name a file")
		}
		return o.openStdout(at)
	}
	if urlpath.Is(o.cfg.Path) {
		in, err := keeper(ctx, o.cfg.Path)
		if err != nil {
			return err
		}
		return openKept(ctx, o, in, at)
	}
	if o.files = confine.From(ctx); o.files != nil {
		o.disk = system{o.files}
	}
	path, err := filepath.Abs(o.cfg.Path)
	if err != nil {
		return pathError(o.cfg.Path, err)
	}
	o.cfg.Path = path
	if err := o.takes(at); err != nil {
		return err
	}
	if err := o.checkTarget(path); err != nil {
		return err
	}
	if err := o.makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	o.attempt = core.Attempt{Exclusive: true}
	if o.cfg.Attempt != nil {
		if o.attempt, err = o.cfg.Attempt(ctx); err != nil {
			return err
		}
	}
	unlock, err := lockFolder(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	err = o.claim(at)
	unlock()
	if err != nil || o.finished {
		return err
	}
	if at == nil || o.lost {
		o.at = OutputPosition{Path: path, Part: o.part(), Form: o.cfg.form()}
	} else if err := o.takeUp(ctx, *at); err != nil || o.at.Base != nil {
		return err
	}
	if err := beginProduct(ctx, o); err != nil {
		return err
	}
	return o.copyTarget(ctx)
}

func (o *Output) takes(at *OutputPosition) error {
	if at != nil {
		if err := o.cfg.checkForm(*at); err != nil {
			return err
		}
		if err := o.cfg.checkAppend(*at); err != nil {
			return err
		}
		o.taken = *at
	}
	if c := o.cfg.compression(); c.name != "" && c.write == nil {
		return fmt.Errorf("%s: files of %s are read only; compression: none writes plain text under this name, and .gz or .zst compress it", o.cfg.Path, c.name)
	}
	return nil
}

// Written output cannot be read back, so a restart cannot continue from a position in it.
func (o *Output) openStdout(at *OutputPosition) error {
	if o.cfg.Append != nil || o.cfg.Together {
		return errors.New("append and together are for files, but - is the standard output")
	}
	if at != nil {
		return fmt.Errorf("cannot restart: %d bytes were written to the standard output and cannot be continued: start over (--from-start), or write to a file", at.Offset)
	}
	o.std = &stdout{w: os.Stdout}
	if o.cfg.Stdout != nil {
		o.std.w = o.cfg.Stdout
	}
	o.at = OutputPosition{Path: o.cfg.Path, Form: o.cfg.form()}
	return nil
}

// claim finds or makes the file and locks it while the folder is locked, so that of two executions
// with one PATH the later sees the file of the first.
func (o *Output) claim(at *OutputPosition) error {
	if err := o.survey(); err != nil {
		return err
	}
	if err := o.surveyLeft(at); err != nil {
		return err
	}
	if at != nil && o.attempt.Exclusive {
		name := o.cfg.Path + at.Part
		file, err := openPart(o.files, name, os.O_RDWR)
		switch {
		case err == nil && lockFile(file) == nil:
			o.file, o.name, o.named = file, name, true
			o.earlier = slices.DeleteFunc(o.earlier, func(other string) bool { return other == name })
			return nil
		case err == nil: // a leftover process of the previous attempt holds it
			file.Close() //nolint:errcheck // it was not written
		case !errors.Is(err, fs.ErrNotExist):
			return pathError(name, err)
		}
	}
	if at != nil {
		if _, err := o.source(*at); err != nil {
			if errors.Is(err, fs.ErrNotExist) && at.Base != nil && at.Offset == at.Base.Size { // a copy, and no more
				o.lost = true
				return o.create()
			}
			if errors.Is(err, fs.ErrNotExist) {
				return o.resumeFinished(*at)
			}
			return err
		}
	}
	return o.create()
}

func (o *Output) create() error {
	name, err := partName(o.cfg.Path, o.attempt, isPart(o))
	if err != nil {
		return err
	}
	file, err := o.files.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, cmp.Or(o.cfg.Mode, 0o600))
	if err != nil {
		return pathError(name, err)
	}
	o.file, o.name = file, name
	if err := lockFile(file); err != nil {
		return pathError(name, err)
	}
	return o.disk.SyncDir(filepath.Dir(name))
}

func (o *Output) part() string { return o.name[len(o.cfg.Path):] }

// begins continues at a position: nothing after it is staged.
func (o *Output) begins(at OutputPosition) {
	if at.Offset == 0 {
		at.Form = o.cfg.form()
	}
	at.Staged, at.Made = "", nil
	o.at, o.inMember, o.body, o.staged = at, false, nil, false
}

func (o *Output) cut(at OutputPosition) error {
	if o.staged && o.body != nil && at.Offset == o.body.Offset && at.Sum == o.body.Sum {
		return nil // these bytes are staged, with the trailer
	}
	if o.std != nil {
		o.begins(at)
		return o.std.cut(at.Offset)
	}
	if o.kept != nil {
		return o.kept.cut(at)
	}
	info, err := o.file.Stat()
	if err != nil {
		return pathError(o.name, err)
	}
	if err := o.file.Truncate(at.Offset); err != nil {
		return pathError(o.name, err)
	}
	if _, err := o.file.Seek(at.Offset, io.SeekStart); err != nil {
		return pathError(o.name, err)
	}
	o.dirty = o.dirty || info.Size() != at.Offset
	o.begins(at)
	return nil
}

func (o *Output) frame() error {
	if o.frames != nil {
		o.frames.Reset(appender{o})
		return nil
	}
	var err error
	o.frames, err = o.cfg.compression().write(appender{o})
	return err
}

// SetTrailer replaces the trailer by one that depends on the written records. Call it before Open
// with the trailer for the position, and before Finish.
func (o *Output) SetTrailer(text []byte) { o.cfg.Trailer = text }

// Finished reports that the file is published and complete.
func (o *Output) Finished() bool { return o.finished }

// Write appends to the file.
func (o *Output) Write(p []byte) (int, error) {
	if o.finished {
		return 0, fmt.Errorf("%s is complete already: it was published before the restart", o.cfg.Path)
	}
	if o.isClosed() {
		return 0, o.closed()
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !o.cfg.compressed() {
		return o.append(p)
	}
	if !o.inMember {
		if err := o.frame(); err != nil {
			return 0, err
		}
		o.inMember = true
	}
	return o.frames.Write(p)
}

func (o *Output) isClosed() bool { return o.file == nil && o.std == nil && o.kept == nil }

func (o *Output) closed() error { return fmt.Errorf("%s: %w", o.cfg.Path, fs.ErrClosed) }

type appender struct{ o *Output }

func (a appender) Write(p []byte) (int, error) { return a.o.append(p) }

func (o *Output) append(p []byte) (int, error) {
	if o.std != nil {
		o.std.text = append(o.std.text, p...)
		o.at.Offset += int64(len(p))
		return len(p), nil
	}
	if o.kept != nil {
		return o.kept.append(p)
	}
	n, err := o.file.Write(p)
	o.at.Sum = crc32.Update(o.at.Sum, castagnoli(), p[:n])
	o.at.Offset += int64(n)
	o.dirty = true
	if err != nil {
		return n, pathError(o.name, err)
	}
	return n, nil
}

// Sync ends the gzip member or zstd frame and makes all written data survive a crash.
func (o *Output) Sync() error {
	if o.finished {
		return nil
	}
	if o.isClosed() {
		return o.closed()
	}
	if o.inMember {
		if err := o.frames.Close(); err != nil {
			return err
		}
		o.inMember = false
	}
	if !o.dirty || o.std != nil {
		return nil
	}
	if o.kept != nil {
		if err := o.kept.part.Sync(); err != nil {
			return pathError(o.cfg.Path, err)
		}
	} else if err := o.disk.Sync(o.file); err != nil {
		return pathError(o.name, err)
	}
	o.dirty = false
	return nil
}

// Position returns the end of the file. It is valid after Sync, before the next Write.
func (o *Output) Position() OutputPosition {
	o.requested = true
	if o.body != nil {
		return *o.body
	}
	return o.at
}

// Release removes the files of earlier attempts after a commit has stored this attempt's Position:
// none of those attempts can commit any more. A file that cannot be removed is an error, since its
// attempt could still publish it.
func (o *Output) Release(ctx context.Context) error {
	if o.kept != nil {
		return o.kept.release(ctx)
	}
	if o.std != nil {
		o.named = true
		return o.std.flush()
	}
	for len(o.earlier) > 0 {
		if err := o.disk.Remove(o.earlier[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the files of an earlier attempt: %w", pathError(o.earlier[0], err))
		}
		o.earlier = o.earlier[1:]
	}
	o.named = true
	return nil
}

// Rewind discards the content after at; nil discards all.
func (o *Output) Rewind(at *OutputPosition) error {
	if o.finished || o.isClosed() {
		return o.closed()
	}
	to := OutputPosition{}
	if at != nil {
		to = *at
	} else {
		o.requested = false // nothing is committed
		if base := o.at.Base; base != nil {
			to = OutputPosition{Offset: base.Size, Sum: base.Sum, Base: base, Form: o.cfg.form()}
		}
	}
	if to.Path = o.cfg.Path; o.file != nil {
		to.Part = o.part()
	}
	if err := o.cut(to); err != nil || at != nil {
		return err
	}
	return o.endLine()
}

// Finish writes the trailer and publishes the file by a rename. It may be called again, also after a failure.
// It needs a Release: before a commit has stored the file's name, a later attempt would not know which file
// to remove.
func (o *Output) Finish(ctx context.Context) error {
	dir := filepath.Dir(o.cfg.Path)
	switch {
	case o.finished && isPart(o):
		return nil
	case o.kept != nil && !isPart(o):
		return o.kept.finish(ctx)
	case o.std != nil:
		return o.finishStdout()
	case o.finished:
		return settle(o, dir)
	case !o.named:
		return fmt.Errorf("%s: its position is not committed, so it cannot be published", o.name)
	case o.cfg.Maker != nil:
		return finishMade(o, dir)
	case isPart(o):
		return finishPart(o)
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
	if err := o.checkBase(); err != nil {
		return err
	}
	if err := rename(o, o.name); err != nil {
		return err
	}
	return errors.Join(o.Close(), settle(o, dir))
}

func rename(o *Output, name string) error {
	if err := o.checkTarget(o.cfg.Path); err != nil {
		return err
	}
	if err := o.disk.Rename(name, o.cfg.Path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is gone: a later attempt has taken the file over, or someone has removed it%w", name, silent{err})
		}
		return pathError(o.cfg.Path, err)
	}
	o.finished = true
	return nil
}

// Declare adds a setting that is known only with the first item; it refuses a value that differs
// from the file's.
func (o *Output) Declare(setting, value string) error {
	if err := o.cfg.compareForm(o.taken, Form{FormWriter: o.cfg.Form[FormWriter], setting: value}); o.taken.Offset > 0 && err != nil {
		return err
	}
	o.at.Form = maps.Clone(o.at.Form)
	o.at.Form[setting] = value
	return nil
}

// A compressed file without any frame would be invalid.
func (o *Output) end() error {
	if len(o.cfg.Trailer) > 0 || !o.cfg.compressed() || o.at.Offset > 0 {
		_, err := o.Write(o.cfg.Trailer)
		return err
	}
	o.dirty = true
	if err := o.frame(); err != nil {
		return err
	}
	return o.frames.Close()
}

// Close closes the file. The part stays, for a restart, unless no position can
// name it.
func (o *Output) Close() error {
	o.std = nil
	if o.kept != nil {
		return o.kept.close()
	}
	if o.file == nil {
		return nil
	}
	var errs []error
	if err := o.file.Close(); err != nil {
		errs = append(errs, pathError(o.name, err))
	}
	o.file = nil
	if !o.finished && !o.named && !o.requested {
		if err := o.disk.Remove(o.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, pathError(o.name, err))
		}
	}
	return errors.Join(append(errs, closeProduct(o))...)
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
