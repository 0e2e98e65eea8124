package filestream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const longestHead = 512

// ErrTooLong is returned by Read if the current record has no end within InputConfig.Max bytes.
var ErrTooLong = errors.New("the record is too long")

// InputConfig configures an Input.
type InputConfig struct {
	Path        string
	As          string          // the name of the file in messages; empty means Path
	Compression ReadCompression // empty means auto
	// Member names a file of a zip archive by a pattern; empty means its only one.
	Member   string
	Encoding EncodingName // one of Encodings; empty means utf-8 or the encoding of a byte order mark
	Max      int64        // longest record in bytes; 0 means no limit
	// Stdin is read if Path is core.StdPath; nil means os.Stdin.
	Stdin io.Reader
	// Accept continues in another file after the part that was read: the rest has been corrected.
	Accept bool
	// Divided means that a part of the file is read: nothing of it may change.
	Divided bool
	Lines   bool
	// Raw delivers the bytes unchanged: Encoding is not used, and a byte order mark is data.
	Raw bool
}

// InputPosition is the position at which a restart continues, part of a reader's item.Position.
type InputPosition struct {
	// Offset counts bytes of the text as UTF-8, byte order mark included.
	Offset int64       `json:"offset"`
	File   Fingerprint `json:"file"`
	Member string      `json:"member,omitempty"`
}

// Skipped is a line that SkipLine threw away.
type Skipped struct {
	Offset int64
	Length int64  // without the line end
	Head   []byte // its first bytes, void at the next SkipLine
}

// Raw returns the line as the text of an item that could not be read.
func (s Skipped) Raw() item.RawText {
	return item.RawText{Text: string(s.Head), Offset: s.Offset, Length: s.Length}
}

// Input is the text of a file as UTF-8, kept since the last Keep. It is not safe for concurrent
// use.
type Input struct {
	cfg   InputConfig
	file  place.File // nil means a text, or the standard input
	free  func()     // memory of a decompressor, or nil
	src   io.Reader
	bytes io.Closer // the stream that src reads
	print Fingerprint
	first int64 // offset of the first character after a byte order mark
	plain bool  // src is the file itself
	cr    bool  // a carriage return alone ends a line, too

	mark     []byte // the first bytes of the text, before decoding
	member   string // of a zip archive
	encoding string // of the file, by its name; plainText is not decoded

	buf   []byte // bytes delivered or to be delivered again
	base  int64  // offset of buf[0]
	pos   int    // next byte of buf to deliver
	keep  int64  // bytes before it are not needed again
	state error  // of the last Read that failed

	skipped Skipped // by the last SkipLine
}

// OpenInput opens a file at its start, or at a position of an earlier attempt: then the file must
// be the same unless cfg accepts another (*ChangedError). Compressed and other than UTF-8 text is
// read again from the start.
func OpenInput(ctx context.Context, cfg InputConfig, at *InputPosition) (*Input, error) {
	if cfg.Path == core.StdPath {
		return openStdin(cfg, at)
	}
	file, err := place.Open(ctx, cfg.Path)
	if err != nil {
		return nil, pathError(cfg.Path, err)
	}
	in := &Input{cfg: cfg, file: file, encoding: plainText}
	if in.print, err = fingerprint(file); err == nil && at != nil {
		if what := changed(at.File, in.print); what != "" && (!cfg.Accept || cfg.Divided) {
			err = &ChangedError{Path: absolute(cfg.Path), What: what, Acceptable: !cfg.Divided, divided: cfg.Divided}
		}
	}
	if err == nil {
		err = in.decode()
	}
	if err == nil && at != nil && at.Member != in.member {
		err = fmt.Errorf("cannot restart: the step read %s of the archive, but now it is %s", cmp.Or(at.Member, "no file"), cmp.Or(in.member, "no file"))
	}
	if err == nil && at != nil && cfg.Accept {
		err = in.fits(at.Offset)
	}
	if err == nil && at != nil {
		err = in.skipTo(ctx, at.Offset)
	}
	if err == nil {
		return in, nil
	}
	var gone *ChangedError
	if !errors.As(err, &gone) {
		err = pathError(cmp.Or(cfg.As, cfg.Path), err)
	}
	return nil, errors.Join(err, in.Close())
}

// openStdin can read only once, so a restart cannot continue.
func openStdin(cfg InputConfig, at *InputPosition) (*Input, error) {
	if at != nil {
		return nil, fmt.Errorf("cannot restart: %d bytes of the standard input were read, and it cannot be read again: provide it again and start over (--from-start), or write it to a file first", at.Offset)
	}
	in := &Input{cfg: cfg, src: os.Stdin, encoding: plainText}
	if cfg.Stdin != nil {
		in.src = cfg.Stdin
	}
	if err := in.decode(); err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return in, nil
}

// TextInput returns the Input of one item that is read again, at offset of its source.
func TextInput(text string, offset int64) *Input {
	return &Input{encoding: plainText, src: strings.NewReader(text), first: offset, base: offset, keep: offset}
}

func (in *Input) decode() error {
	plain := in.file != nil
	if plain {
		in.stream(0)
	}
	form := in.form()
	if in.cfg.Member != "" && form.name != compressionZip {
		return errors.New("its name is not one of a zip archive, but member names a file in one: set compression: zip")
	}
	if form.name != "" {
		if err := in.decompress(form); err != nil {
			return err
		}
		plain = false
	}
	if in.cfg.Raw {
		if plain {
			in.seekTo(0)
		}
		return nil
	}
	c, err := codecOf(in.cfg.Encoding)
	if err != nil {
		return err
	}
	head := bufio.NewReaderSize(in.src, longestHead)
	in.src = head
	mark, err := head.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	in.mark = bytes.Clone(mark)
	begin, err := head.Peek(head.Buffered())
	if err == nil {
		err = in.checkHead(begin, form.name != "")
	}
	if err != nil {
		return err
	}
	if c.utf8 {
		declared, skip := byteOrderMark(mark)
		if _, err := head.Discard(skip); err != nil {
			return err
		}
		in.first = int64(skip)
		if plain && declared == "" {
			in.seekTo(in.first)
			return nil
		}
		if declared != "" {
			if c, err = codecOf(declared); err != nil {
				return err
			}
		}
	}
	if !c.utf8 {
		in.encoding, in.src = c.Name, transform.NewReader(in.src, c.decoder())
	}
	in.base, in.keep = in.first, in.first
	return nil
}

func (in *Input) seekTo(offset int64) {
	in.stream(offset)
	in.plain, in.base, in.keep = true, offset, offset
}

// stream reads the bytes of the file from offset on.
func (in *Input) stream(offset int64) {
	if in.bytes != nil {
		_ = in.bytes.Close() //nolint:errcheck // it was only read
	}
	from := in.file.From(offset)
	in.src, in.bytes = from, from
}

// fits checks that an accepted file can be continued at offset; compressed and other text is not
// examined.
func (in *Input) fits(offset int64) error {
	if !in.plain {
		return nil
	}
	if offset > in.print.Size {
		return &ChangedError{Path: absolute(in.cfg.Path), What: fmt.Sprintf("it has %d bytes, but %d were read", in.print.Size, offset)}
	}
	if !in.cfg.Lines || offset <= in.first {
		return nil
	}
	var last [1]byte
	if _, err := in.file.ReadAt(last[:], offset-1); err != nil {
		return err
	}
	if last[0] != '\n' && last[0] != '\r' {
		return &ChangedError{Path: absolute(in.cfg.Path), What: fmt.Sprintf("no line ends at the last position, byte %d", offset)}
	}
	return nil
}

func (in *Input) skipTo(ctx context.Context, offset int64) error {
	if in.plain {
		if offset < in.first || offset > in.print.Size {
			return fmt.Errorf("cannot restart at offset %d", offset)
		}
		in.seekTo(offset)
		return nil
	}
	const step = 1 << 20
	for in.base < offset {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(io.Discard, in.src, min(step, offset-in.base))
		in.base += n
		if err != nil {
			return fmt.Errorf("cannot restart at offset %d: %w", offset, err)
		}
	}
	if in.base != offset {
		return fmt.Errorf("cannot restart at offset %d", offset)
	}
	in.keep = in.base
	return nil
}

// Holds reports whether Rewind can go back to offset.
func (in *Input) Holds(offset int64) bool {
	return offset >= in.base && offset <= in.base+int64(len(in.buf))
}

// More reads after the buffered text. io.EOF: nothing follows; ErrTooLong: more than
// InputConfig.Max bytes since the last Keep.
func (in *Input) More(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if in.cfg.Max > 0 && in.base+int64(len(in.buf))-in.keep > in.cfg.Max {
		return ErrTooLong
	}
	in.pos = len(in.buf)
	in.compact()
	if n, err := in.fill(); n == 0 {
		return err
	}
	in.pos = len(in.buf)
	return nil
}

// Size returns the bytes of the file when opened; false if Read delivers other bytes, or for a
// pipe.
func (in *Input) Size() (int64, bool) {
	return in.print.Size, in.plain
}

// Start returns the offset of the first character of the file.
func (in *Input) Start() int64 { return in.first }

// Position returns the position of offset.
func (in *Input) Position(offset int64) InputPosition {
	return InputPosition{Offset: offset, File: in.print, Member: in.member}
}

// Read delivers the next bytes. After ErrTooLong it keeps failing until Keep or Rewind.
func (in *Input) Read(p []byte) (int, error) {
	if in.pos < len(in.buf) {
		n := copy(p, in.buf[in.pos:])
		in.pos += n
		return n, nil
	}
	delivered := in.base + int64(in.pos)
	if in.cfg.Max > 0 && delivered-in.keep > in.cfg.Max {
		in.state = ErrTooLong
		return 0, in.state
	}
	in.compact()
	n, err := in.fill()
	if n == 0 {
		in.state = err
		return 0, err
	}
	n = copy(p, in.buf[in.pos:])
	in.pos += n
	in.state = nil
	return n, nil
}

// Failed returns the error other than io.EOF that ended the last Read.
func (in *Input) Failed() error {
	if in.state == nil || errors.Is(in.state, io.EOF) {
		return nil
	}
	return in.state
}

func (in *Input) compact() {
	drop := int(min(in.keep-in.base, int64(len(in.buf))))
	if drop <= 0 {
		return
	}
	in.buf = in.buf[:copy(in.buf, in.buf[drop:])]
	in.base += int64(drop)
	in.pos -= drop
}

func (in *Input) fill() (int, error) {
	have := len(in.buf)
	if cap(in.buf)-have < readBytes {
		grown := make([]byte, have, 2*cap(in.buf)+readBytes)
		copy(grown, in.buf)
		in.buf = grown
	}
	for empty := 0; empty < 100; empty++ {
		n, err := in.src.Read(in.buf[have : have+readBytes])
		in.buf = in.buf[:have+n]
		if n == 0 && err != nil {
			err = in.ended(err)
		}
		if n > 0 || err != nil {
			return n, err // a source repeats its error
		}
	}
	return 0, io.ErrNoProgress
}

// Keep releases the bytes before offset: a record ends there.
func (in *Input) Keep(offset int64) { in.keep = offset }

// Rewind makes offset, not before the last Keep, the next byte delivered.
func (in *Input) Rewind(offset int64) {
	in.pos, in.state = int(offset-in.base), nil
}

// Buffered returns the already read bytes from offset on; invalid after the next call.
func (in *Input) Buffered(offset int64) []byte { return in.buf[offset-in.base:] }

// Lines counts the line ends between two offsets after the last Keep.
func (in *Input) Lines(from, to int64) int64 {
	return int64(bytes.Count(in.buf[from-in.base:to-in.base], []byte{'\n'}))
}

// Close closes the file.
func (in *Input) Close() error {
	if in.free != nil {
		in.free()
		in.free = nil
	}
	if in.file == nil { // a text
		return nil
	}
	var err error
	if in.bytes != nil {
		err = in.bytes.Close()
	}
	return errors.Join(err, in.file.Close()) // Close of a decompressor only repeats the error of a read
}

// NotValid is the predicate of messages about text with damage.
func (in *Input) NotValid() string {
	return fmt.Sprintf("is not valid %s (see the key encoding)", in.encoding)
}

// CheckDecoded refuses decoded text with damage. A reader checks the text of a UTF-8 file itself.
func (in *Input) CheckDecoded(text []byte) error {
	if in.encoding == plainText || utf8.Valid(text) {
		return nil
	}
	return fmt.Errorf("%.60q %s", text, in.NotValid())
}

// If the file has become longer, the text after the last Keep is a record that may end in the added
// part; blanks are not.
func (in *Input) ended(err error) error {
	if in.file == nil {
		return err
	}
	cut := errors.Is(err, io.EOF) && in.isPending() || errors.Is(err, io.ErrUnexpectedEOF)
	if !cut && !errors.Is(err, place.ErrShrank) {
		return err
	}
	now, statErr := in.file.Now()
	switch {
	case statErr != nil:
		return statErr
	case errors.Is(err, place.ErrShrank):
		return exception.Fatal("", fmt.Errorf("the file became shorter while it was read: it had %d bytes when it was opened, and now has %d", in.print.Size, now.Size))
	case now.Size <= in.print.Size:
		return err
	}
	return exception.Fatal("", fmt.Errorf("the file grew while it was read: it had %d bytes when it was opened, now has %d, and the record that begins here was incomplete; load the file when it is complete (the tasklet wait_file with stable waits for that)", in.print.Size, now.Size))
}

func (in *Input) isPending() bool {
	from := min(max(in.keep-in.base, 0), int64(len(in.buf)))
	return len(bytes.Trim(in.buf[from:], " \t\r\n")) > 0
}
