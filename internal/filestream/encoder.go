package filestream

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

func byteOrderMark(head []byte) (encoding EncodingName, skip int) {
	switch {
	case len(head) >= 3 && head[0] == 0xEF && head[1] == 0xBB && head[2] == 0xBF:
		return "", 3
	case len(head) >= 2 && head[0] == 0xFF && head[1] == 0xFE,
		len(head) >= 2 && head[0] == 0xFE && head[1] == 0xFF:
		return "utf-16", 0
	}
	return "", 0
}

// Encoder turns UTF-8 text into the bytes of an encoding. It is safe for concurrent use.
type Encoder struct {
	codec codec
	of    encoding.Encoding // of units and multi
}

// NewEncoder returns the encoder of a name out of Encodings.
func NewEncoder(name EncodingName) (*Encoder, error) {
	c, err := codecOf(name)
	if err != nil {
		return nil, err
	}
	e := &Encoder{codec: c, of: c.multi}
	switch c.units {
	case "be":
		e.of = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case "le":
		e.of = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	}
	return e, nil
}

// BOM returns the bytes that begin a file of the encoding; usually none.
func (e *Encoder) BOM() []byte { return e.codec.bom }

// IsUTF8 reports whether Append appends the text unchanged.
func (e *Encoder) IsUTF8() bool { return e.codec.utf8 }

// Append appends text, valid UTF-8, in the encoding. A character that the encoding lacks is an error. The
// text must not be in the memory of dst.
func (e *Encoder) Append(dst, text []byte) ([]byte, error) {
	switch {
	case e.codec.utf8:
		return append(dst, text...), nil
	case e.codec.page != nil:
		return e.appendPage(dst, text)
	}
	all, _, err := transform.Append(e.of.NewEncoder(), dst, text)
	if err != nil || e.codec.multi != nil && bytes.IndexByte(text, private) >= 0 && !e.exact(text, all[len(dst):]) {
		return dst, e.lacks(text)
	}
	return all, nil
}

// private begins the UTF-8 of U+E000 to U+EFFF, most of the characters for private use. For
// gb18030, x/text writes other ones instead.
const private = 0xEE

func (e *Encoder) exact(text, encoded []byte) bool {
	back, _, err := transform.Bytes(e.codec.decoder(), encoded)
	return err == nil && bytes.Equal(back, text)
}

func (e *Encoder) appendPage(dst, text []byte) ([]byte, error) {
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		b, ok := e.codec.page.EncodeRune(r)
		if !ok || r == utf8.RuneError || e.codec.isGap(r) {
			return dst, e.lackOf(r)
		}
		dst, rest = append(dst, b), rest[size:]
	}
	return dst, nil
}

func (e *Encoder) lacks(text []byte) error {
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if encoded, err := e.of.NewEncoder().Bytes(rest[:size]); err != nil || !e.exact(rest[:size], encoded) {
			return e.lackOf(r)
		}
		rest = rest[size:]
	}
	return fmt.Errorf("%s cannot encode this text", e.codec.Name)
}

func (e *Encoder) lackOf(r rune) error {
	return fmt.Errorf("%s does not have the character %q (%U)", e.codec.Name, r, r)
}
