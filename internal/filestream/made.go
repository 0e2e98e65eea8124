package filestream

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/place"
)

// Maker makes a file of a format that is whole or nothing.
type Maker interface {
	// Make makes the file of all written bytes.
	Make(ctx context.Context, journal *bufio.Reader, file io.Writer) error
	// Check reads the made file back.
	Check(file io.ReaderAt, size int64) error
}

// Made is a file that was made of a journal, before it is published.
type Made struct {
	Part string `json:"part"`
	Size int64  `json:"size"`
	Sum  uint32 `json:"sum"` // CRC-32C
}

func (m *Made) is(file io.Reader) bool {
	sum := crc32.New(castagnoli())
	n, err := io.Copy(sum, file)
	return err == nil && n == m.Size && sum.Sum32() == m.Sum
}

// published is the suffix of the part that the file is published from.
func (at *OutputPosition) published() string {
	if at.Made != nil {
		return at.Made.Part
	}
	return at.Part
}

// product is the part of the made file. It is there before the attempt's first commit: a later attempt finds and
// removes it, after which this one can publish nothing.
type product struct {
	name string
	file *os.File
	part place.Part // instead of file, in a place without locks
	Made
	kept int64 // size at the last call of part.Kept
}

func beginProduct(ctx context.Context, o *Output) error {
	if o.cfg.Maker == nil {
		return nil
	}
	attempt := &o.attempt
	if o.kept != nil {
		attempt = &o.kept.attempt
	}
	name, err := partName(o.cfg.Path, *attempt, false)
	if err != nil {
		return err
	}
	p := &product{name: name}
	p.Part = name[len(o.cfg.Path):]
	if o.kept != nil {
		p.part, err = o.kept.in.Create(ctx, o.cfg.Path, p.Part)
	} else if p.file, err = o.files.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, cmp.Or(o.cfg.Mode, 0o600)); err == nil {
		err = lockFile(p.file)
	}
	if p.part != nil || p.file != nil {
		o.made = p
	}
	if err != nil {
		return pathError(name, err)
	}
	return nil
}

// make makes the file, and reads it back. The journal is compared with its checksum meanwhile.
func (p *product) make(ctx context.Context, o *Output, of *OutputPosition) error {
	if err := p.clear(); err != nil {
		return pathError(p.name, err)
	}
	var from io.ReaderAt = o.file
	if o.kept != nil {
		from = o.kept.part
	}
	sum := crc32.New(castagnoli())
	journal := bufio.NewReaderSize(io.TeeReader(reader{ctx, io.NewSectionReader(from, 0, of.Offset)}, sum), journalBytes)
	if err := o.cfg.Maker.Make(ctx, journal, filler{ctx, p}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, journal); err != nil {
		return pathError(o.cfg.Path+of.Part, err)
	}
	if sum.Sum32() != of.Sum {
		return fmt.Errorf("the %d committed bytes of %s have changed since (their checksum is different)", of.Offset, o.cfg.Path+of.Part)
	}
	if err := p.sync(o.disk); err != nil {
		return pathError(p.name, err)
	}
	if err := o.cfg.Maker.Check(p.reader(), p.Size); err != nil {
		return fmt.Errorf("%s, as it was read back: %w", p.name, err)
	}
	made := p.Made
	of.Made = &made
	return nil
}

const (
	journalBytes = 4 << 20
	keptBytes    = 512 << 20
)

func (p *product) reader() io.ReaderAt {
	if p.part != nil {
		return p.part
	}
	return p.file
}

func (p *product) clear() error {
	p.Size, p.Sum, p.kept = 0, 0, 0
	if p.part != nil {
		return p.part.Cut(0, 0)
	}
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	_, err := p.file.Seek(0, io.SeekStart)
	return err
}

type filler struct {
	ctx context.Context
	*product
}

func (p filler) Write(b []byte) (n int, err error) {
	if p.part == nil {
		n, err = p.file.Write(b)
	} else {
		n, err = p.part.Write(b)
	}
	p.Sum = crc32.Update(p.Sum, castagnoli(), b[:n])
	p.Size += int64(n)
	if err == nil && p.part != nil && p.Size-p.kept >= keptBytes { // of many pieces it makes few
		p.kept = p.Size
		err = p.part.Kept(p.ctx)
	}
	return n, err
}

func (p *product) sync(on disk) error {
	if p.part != nil {
		return p.part.Sync()
	}
	return on.Sync(p.file)
}

// closeProduct removes the made file, which the next attempt makes again, unless it is published or its publication may be
// committed.
func closeProduct(o *Output) error {
	p := o.made
	if p == nil {
		return nil
	}
	o.made = nil
	if p.part != nil {
		return p.part.Close(o.staged && !o.finished)
	}
	err := p.file.Close()
	if !o.finished {
		if gone := o.disk.Remove(p.name); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return pathError(p.name, err)
	}
	return nil
}

// Stage prepares the publication of a complete file. If it reports true, the position must be committed once more
// before Finish.
func (o *Output) Stage(ctx context.Context) (bool, error) {
	if o.kept == nil && o.cfg.Maker == nil || isPart(o) || o.finished || o.staged {
		return o.staged && !o.finished, nil
	}
	if o.body != nil {
		if err := o.Rewind(o.body); err != nil {
			return false, err
		}
	}
	if err := o.Sync(); err != nil {
		return false, err
	}
	body := o.at
	if o.cfg.Maker == nil {
		if err := o.end(); err != nil {
			return false, err
		}
		if err := o.Sync(); err != nil {
			return false, err
		}
	} else if err := o.made.make(ctx, o, &body); err != nil {
		return false, err
	}
	if o.kept != nil {
		var err error
		if body.Staged, err = o.kept.stage(ctx); err != nil {
			return false, err
		}
	}
	o.body, o.staged = &body, true
	return true, nil
}

func finishMade(o *Output, dir string) error {
	if !o.staged {
		return notStaged(o.cfg.Path)
	}
	if err := rename(o, o.made.name); err != nil {
		return err
	}
	o.at.Made = o.body.Made
	return errors.Join(o.Close(), settle(o, dir))
}

func notStaged(path string) error {
	return fmt.Errorf("%s: its publication is not committed", path)
}

// settle makes the publication survive a crash, and removes the journal of a made file and joined parts.
func settle(o *Output, dir string) error {
	if err := o.disk.SyncDir(dir); err != nil || o.at.Made == nil && o.joined == nil {
		return err
	}
	if o.joined != nil {
		return removeJoined(o)
	}
	name := o.at.Path + o.at.Part
	if err := o.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError(name, err)
	}
	return o.disk.SyncDir(filepath.Dir(name))
}
