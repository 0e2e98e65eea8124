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

// Encoder turns UTF-8 text into the bytes of an encoding.
type Encoder struct {
	codec codec
	enc   *encoding.Encoder // of units and multi
	buf   []byte            // of page
}

// NewEncoder returns the encoder of a name out of Encodings.
func NewEncoder(name EncodingName) (*Encoder, error) {
	c, err := codecOf(name)
	if err != nil {
		return nil, err
	}
	e := &Encoder{codec: c}
	switch {
	case c.units == "be":
		e.enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder()
	case c.units == "le":
		e.enc = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder()
	case c.multi != nil:
		e.enc = c.multi.NewEncoder()
	}
	return e, nil
}

// BOM returns the bytes that begin a file of the encoding; usually none.
func (e *Encoder) BOM() []byte { return e.codec.bom }

// IsUTF8 reports whether Encode returns the text unchanged.
func (e *Encoder) IsUTF8() bool { return e.codec.utf8 }

// Encode returns text, valid UTF-8, in the encoding. A character that the encoding lacks is an error. The
// result may share memory with text, and is invalid after the next call.
func (e *Encoder) Encode(text []byte) ([]byte, error) {
	switch {
	case e.codec.utf8:
		return text, nil
	case e.codec.page != nil:
		return e.encodePage(text)
	}
	e.enc.Reset()
	encoded, err := e.enc.Bytes(text)
	if err != nil || e.codec.multi != nil && bytes.IndexByte(text, private) >= 0 && !e.exact(text, encoded) {
		return nil, e.lacks(text)
	}
	return encoded, nil
}

// private begins the UTF-8 of U+E000 to U+EFFF, most of the characters for private use. For
// gb18030, x/text writes other ones instead.
const private = 0xEE

func (e *Encoder) exact(text, encoded []byte) bool {
	back, _, err := transform.Bytes(e.codec.decoder(), encoded)
	return err == nil && bytes.Equal(back, text)
}

func (e *Encoder) encodePage(text []byte) ([]byte, error) {
	e.buf = e.buf[:0]
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		b, ok := e.codec.page.EncodeRune(r)
		if !ok || r == utf8.RuneError || e.codec.isGap(r) {
			return nil, e.lackOf(r)
		}
		e.buf, rest = append(e.buf, b), rest[size:]
	}
	return e.buf, nil
}

func (e *Encoder) lacks(text []byte) error {
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		e.enc.Reset()
		if encoded, err := e.enc.Bytes(rest[:size]); err != nil || !e.exact(rest[:size], encoded) {
			return e.lackOf(r)
		}
		rest = rest[size:]
	}
	return fmt.Errorf("%s cannot encode this text", e.codec.Name)
}

func (e *Encoder) lackOf(r rune) error {
	return fmt.Errorf("%s does not have the character %q (%U)", e.codec.Name, r, r)
}
