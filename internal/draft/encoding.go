package draft

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/filestream"
)

// EncodingError means that a file is not in the encoding in which it is read.
type EncodingError struct {
	Path string
	// Byte is the first invalid byte, Offset its offset in the file, from 0, and Line its line.
	Byte         byte
	Offset, Line int64
	// Likely is an encoding that fits; empty if unknown. Why is set if the encoding was known.
	Likely, Why string
}

// Error returns the location of the byte, and advice.
func (e *EncodingError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("%s:%d: the text at offset %d %s", e.Path, e.Line, e.Offset, e.Why)
	}
	cure := "set its encoding: --encoding NAME"
	if e.Likely != "" {
		cure = fmt.Sprintf("is it %s? --encoding %[1]s", e.Likely)
	}
	return fmt.Sprintf("%s:%d: byte 0x%02x at offset %d is not UTF-8 (%s)", e.Path, e.Line, e.Byte, e.Offset, cure)
}

// notUTF8 returns the error for a byte of the file. why names the encoding in which the text is
// invalid.
func (s *Shape) notUTF8(ctx context.Context, why string, found byte, line, offset int64) error {
	e := &EncodingError{Path: s.Path, Byte: found, Line: line, Offset: offset}
	if s.Encoding == "" && strings.Contains(why, "UTF-8") {
		e.Likely = s.likely(ctx)
	} else {
		e.Why = why
	}
	return e
}

// badEncoding searches a byte that is not UTF-8 after the file could not be opened as text; without
// one it returns err.
func (s *Shape) badEncoding(ctx context.Context, err error) error {
	text, failed := s.beginning(ctx)
	if s.Encoding != "" || failed != nil || utf8.Valid(text) {
		return err
	}
	line, offset := int64(1), 0
	for offset < len(text) {
		r, n := utf8.DecodeRune(text[offset:])
		if r == utf8.RuneError && n == 1 {
			if len(text)-offset < utf8.UTFMax && !utf8.FullRune(text[offset:]) {
				return err // truncated by the end of the sample
			}
			return s.notUTF8(ctx, "UTF-8", text[offset], line, int64(offset))
		}
		if r == '\n' {
			line++
		}
		offset += n
	}
	return err
}

// wide reports a text in UTF-16 without a byte order mark: every other byte of it is 0.
func (s *Shape) wide(ctx context.Context) error {
	if s.Encoding != "" {
		return nil
	}
	text, err := s.beginning(ctx)
	if err != nil {
		return err
	}
	if at := bytes.IndexByte(text, 0); at >= 0 {
		if likely := zeros(text); likely != "" {
			return &EncodingError{Path: s.Path, Byte: 0, Line: 1 + int64(bytes.Count(text[:at], []byte{'\n'})), Offset: int64(at), Likely: likely}
		}
	}
	return nil
}

// zeros returns the encoding of a text with every other byte 0; empty if it is not one.
func zeros(text []byte) string {
	var at [2]int
	for i, c := range text {
		if c == 0 {
			at[i%2]++
		}
	}
	switch share := len(text) / 6; {
	case at[1] > share && at[1] > at[0]:
		return "utf-16le"
	case at[0] > share:
		return "utf-16be"
	}
	return ""
}

// likelyBytes is the number of bytes of a file that are read to find its encoding.
const likelyBytes = 1 << 20

func (s *Shape) beginning(ctx context.Context) (text []byte, err error) {
	in, err := filestream.OpenInput(ctx, filestream.InputConfig{Path: s.Path, Encoding: filestream.EncodingName(s.Encoding)}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for len(in.Buffered(in.Start())) < likelyBytes && in.More(ctx) == nil { //nolint:revive // More fills the buffer
	}
	return append([]byte(nil), in.Buffered(in.Start())...), nil
}

// likely guesses the encoding of a text that is not UTF-8 from its bytes beyond ASCII: single ones
// among letters are letters with accents; other alphabets' letters come in runs. Empty means
// unknown.
func (s *Shape) likely(ctx context.Context) string {
	text, err := s.beginning(ctx)
	if err != nil {
		return ""
	}
	if utf16 := zeros(text); utf16 != "" {
		return utf16
	}
	var count [256]int // of bytes in runs
	single, runs, dos, upper := 0, 0, 0, 0
	for i, c := range text {
		switch {
		case c < utf8.RuneSelf:
		case i > 0 && text[i-1] >= utf8.RuneSelf || i+1 < len(text) && text[i+1] >= utf8.RuneSelf:
			runs++
			count[c]++
			if c >= 0xc0 {
				upper++
			}
		default:
			single++
			if i > 0 && isLetter(text[i-1]) && c < 0xa6 {
				dos++ // a letter in the code pages of DOS, a sign in windows-1252
			}
		}
	}
	switch {
	case runs > single:
		return likelyRuns(&count, runs, upper)
	case dos*2 > single:
		return "ibm850"
	}
	return "windows-1252"
}

// likelyRuns is likely for text of another alphabet. Cyrillic has its letters from 0xc0 on, small
// ones in one half of them; kana begin with the same bytes over and over.
func likelyRuns(count *[256]int, runs, upper int) string {
	switch {
	case count[0x82]+count[0x83] > runs/5:
		return "shift-jis"
	case count[0xa4]+count[0xa5] > runs/5:
		return "euc-jp"
	case upper < runs*9/10:
		return ""
	}
	low := 0
	for c := 0xc0; c < 0xe0; c++ {
		low += count[c]
	}
	if low > upper-low {
		return "koi8-r"
	}
	return "windows-1251"
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
