package text

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/filestream"
)

// Records with a length in bytes are decoded field by field, as packed and binary numbers have no encoding.
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

// length is 0 for lines
func checkEncoding(name filestream.EncodingName, length int) error {
	if length > 0 {
		_, err := newCodec(name)
		return err
	}
	return filestream.CheckEncoding(name)
}

func (c *codec) decode(raw string) (string, error) { return c.Decode(raw) }

func (c *codec) encode(dst []byte, text string) ([]byte, error) { return c.Append(dst, text) }

const hexMark = "hex:"

// characters, or hexadecimal digits if some bytes are not text
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
