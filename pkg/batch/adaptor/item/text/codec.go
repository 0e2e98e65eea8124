package text

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
)

// codec is the encoding of records with a length in bytes. They are decoded field by field, as packed and
// binary numbers have no encoding.
type codec struct {
	*filestream.FieldCodec
	ebcdic bool
	blank  byte
}

func newCodec(name filestream.EncodingName) (*codec, error) {
	c, err := filestream.NewFieldCodec(name)
	if err != nil {
		return nil, err
	}
	return &codec{FieldCodec: c, ebcdic: c.IsEBCDIC(), blank: c.Blank()}, nil
}

// checkEncoding reports an encoding that is not possible for records of the length, which is 0 for lines.
func checkEncoding(name filestream.EncodingName, length int) error {
	if length > 0 {
		_, err := newCodec(name)
		return err
	}
	return filestream.CheckEncoding(name)
}

func (c *codec) decode(raw string) (string, error) { return c.Decode(raw) }

func (c *codec) encode(dst []byte, text string) ([]byte, error) { return c.Append(dst, text) }

// hexMark begins the text of a record that is not text.
const hexMark = "hex:"

// textOf returns a record as a text that bytesOf turns back: its characters, or hexadecimal digits if some of
// its bytes are not text.
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
		return nil, fmt.Errorf("after %s write two hexadecimal digits for each byte: %w", hexMark, err)
	}
	return raw, nil
}
