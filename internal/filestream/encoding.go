package filestream

import (
	"fmt"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Encodings lists the values of an `encoding` key, for messages and schemas.
func Encodings() []string {
	return []string{"utf-8", "utf-8-bom", "utf-16", "utf-16le", "utf-16be", "latin1", "iso-8859-1", "iso-8859-15", "windows-1252"}
}

// CheckEncoding reports a name that is not in Encodings.
func CheckEncoding(name string) error {
	_, err := encodingOf(name, unicode.UseBOM)
	return err
}

// CanonicalEncoding returns the one name of encodings that write the same bytes.
func CanonicalEncoding(name string) string {
	switch name {
	case "":
		return "utf-8"
	case "latin1":
		return "iso-8859-1"
	}
	return name
}

// encodingOf returns nil for UTF-8, which needs no work. bom is for UTF-16: a
// reader uses a byte order mark where there is one, a writer writes it itself.
func encodingOf(name string, bom unicode.BOMPolicy) (encoding.Encoding, error) {
	switch name {
	case "", "utf-8", "utf-8-bom":
		return nil, nil
	case "utf-16", "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, bom), nil
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, bom), nil
	case "latin1", "iso-8859-1":
		return charmap.ISO8859_1, nil
	case "iso-8859-15":
		return charmap.ISO8859_15, nil
	case "windows-1252":
		return charmap.Windows1252, nil
	}
	return nil, fmt.Errorf("unknown encoding %q (allowed: %s)", name, strings.Join(Encodings(), ", "))
}

// byteOrderMark returns the encoding that the first bytes of a file declare, and
// how many bytes of it a UTF-8 reader skips. nil: UTF-8.
func byteOrderMark(head []byte) (enc encoding.Encoding, skip int) {
	switch {
	case len(head) >= 3 && head[0] == 0xEF && head[1] == 0xBB && head[2] == 0xBF:
		return nil, 3
	case len(head) >= 2 && head[0] == 0xFF && head[1] == 0xFE,
		len(head) >= 2 && head[0] == 0xFE && head[1] == 0xFF:
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), 0
	}
	return nil, 0
}

// Encoder turns UTF-8 text into the bytes of an encoding.
type Encoder struct {
	enc *encoding.Encoder // nil: UTF-8
	bom []byte
}

// NewEncoder returns the encoder of a name out of Encodings.
func NewEncoder(name string) (*Encoder, error) {
	e := &Encoder{}
	switch name {
	case "utf-8-bom":
		e.bom = []byte{0xEF, 0xBB, 0xBF}
	case "utf-16":
		e.bom = []byte{0xFF, 0xFE}
	}
	enc, err := encodingOf(name, unicode.IgnoreBOM)
	if err != nil {
		return nil, err
	}
	if enc != nil {
		e.enc = enc.NewEncoder()
	}
	return e, nil
}

// BOM returns the bytes that begin a file of the encoding; usually none.
func (e *Encoder) BOM() []byte { return e.bom }

// IsUTF8 reports whether Encode returns the text as it is.
func (e *Encoder) IsUTF8() bool { return e.enc == nil }

// Encode returns text, valid UTF-8, in the encoding. A character that the
// encoding lacks is an error. The answer may share memory with text.
func (e *Encoder) Encode(text []byte) ([]byte, error) {
	if e.enc == nil {
		return text, nil
	}
	e.enc.Reset()
	return e.enc.Bytes(text)
}
