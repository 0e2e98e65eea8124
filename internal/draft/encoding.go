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
	Path         string
	Byte         byte
	Offset, Line int64
	// Likely is an encoding that fits; empty if unknown.
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

func (s *Shape) notUTF8(ctx context.Context, why string, found byte, line, offset int64) error {
	e := &EncodingError{Path: s.Path, Byte: found, Line: line, Offset: offset}
	if s.Encoding == "" && strings.Contains(why, "UTF-8") {
		e.Likely = s.likely(ctx)
	} else {
		e.Why = why
	}
	return e
}

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

// likely guesses by the bytes beyond ASCII: single ones among letters are accents; other alphabets
// come in runs.
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
