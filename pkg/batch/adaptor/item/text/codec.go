package text

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/surfin-batch/surfin/internal/filestream"
)

// codec is the encoding of records that have a length in bytes. They are decoded field by field, as
// packed and binary numbers have no encoding.
type codec struct {
	name   string
	page   *charmap.Charmap // nil: UTF-8
	ebcdic bool
	blank  byte
}

// newCodec returns the codec of a value of the key encoding.
func newCodec(name string) (*codec, error) {
	c := &codec{name: name, blank: ' '}
	if name == "" || name == "utf-8" {
		return c, nil
	}
	if c.page = codePage(name); c.page == nil {
		return nil, fmt.Errorf("%s: with length a character of a record is one byte; it can be utf-8, %s", name, strings.Join(codePages(), ", "))
	}
	c.blank, _ = c.page.EncodeRune(' ')
	c.ebcdic = c.blank != ' '
	return c, nil
}

// codePage returns the code page of a name; nil: it has none with one byte for each character.
func codePage(name string) *charmap.Charmap {
	switch name {
	case "latin1", "iso-8859-1":
		return charmap.ISO8859_1
	case "iso-8859-15":
		return charmap.ISO8859_15
	case "windows-1252":
		return charmap.Windows1252
	case "ibm037":
		return charmap.CodePage037
	case "ibm1047":
		return charmap.CodePage1047
	case "ibm1140":
		return charmap.CodePage1140
	}
	return nil
}

// codePages are the names that codePage knows.
func codePages() []string {
	return []string{"iso-8859-1", "iso-8859-15", "windows-1252", "ibm037", "ibm1047", "ibm1140"}
}

// ebcdicNames are the encodings of records with a length only: as lines they are not known yet.
func ebcdicNames() []string { return []string{"ibm037", "ibm1047", "ibm1140"} }

// checkEncoding reports an encoding that records of the length, 0 for lines, cannot have.
func checkEncoding(name string, length int) error {
	if length > 0 {
		_, err := newCodec(name)
		return err
	}
	if err := filestream.CheckEncoding(name); err != nil {
		if slices.Contains(ebcdicNames(), name) {
			return fmt.Errorf("%s is for records without line ends: give their length", name)
		}
		return err
	}
	return nil
}

// errEncoding says that bytes are not characters of the encoding.
var errEncoding = errors.New("see the key encoding")

// decode returns the text of some bytes of a record.
func (c *codec) decode(raw string) (string, error) {
	if c.page == nil {
		if !utf8.ValidString(raw) {
			return "", fmt.Errorf("not valid UTF-8 (%w)", errEncoding)
		}
		return raw, nil
	}
	if !c.ebcdic && isASCII(raw) {
		return raw, nil
	}
	text := make([]byte, 0, len(raw)+len(raw)/2)
	for i := range len(raw) {
		r := c.page.DecodeByte(raw[i])
		if r == utf8.RuneError {
			return "", fmt.Errorf("the byte %02X is not a character of %s (%w)", raw[i], c.name, errEncoding)
		}
		text = utf8.AppendRune(text, r)
	}
	return string(text), nil
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// encode appends the bytes of a text.
func (c *codec) encode(dst []byte, text string) ([]byte, error) {
	if c.page == nil {
		if !utf8.ValidString(text) {
			return dst, errors.New("the text is not valid UTF-8")
		}
		return append(dst, text...), nil
	}
	for _, r := range text {
		b, ok := c.page.EncodeRune(r)
		if !ok {
			return dst, fmt.Errorf("the character %q is not in %s", r, c.name)
		}
		dst = append(dst, b)
	}
	return dst, nil
}

// hexMark begins the text of a record that no text can stand for.
const hexMark = "hex:"

// textOf returns a record as a text that bytesOf turns back: its characters, or its bytes as
// hexadecimal digits if it has bytes that are not text.
func (c *codec) textOf(raw string, binary bool) string {
	if !binary {
		text, err := c.decode(raw)
		if err == nil && !strings.HasPrefix(text, hexMark) {
			if back, err := c.encode(nil, text); err == nil && string(back) == raw {
				return text
			}
		}
	}
	return hexMark + hex.EncodeToString([]byte(raw))
}

// bytesOf returns the bytes of a record from its text.
func (c *codec) bytesOf(text string) ([]byte, error) {
	digits, is := strings.CutPrefix(text, hexMark)
	if !is {
		return c.encode(nil, text)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(digits))
	if err != nil {
		return nil, fmt.Errorf("behind %s stand two hexadecimal digits for each byte: %w", hexMark, err)
	}
	return raw, nil
}
