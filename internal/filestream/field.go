package filestream

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// FieldCodec decodes and encodes the fields of records with positions in bytes. It is safe for concurrent
// use.
type FieldCodec struct {
	codec codec
	enc   *Encoder
	blank byte
}

// NewFieldCodec returns the codec of a name out of Encodings with one-byte blanks.
func NewFieldCodec(name EncodingName) (*FieldCodec, error) {
	enc, err := NewEncoder(name)
	if err != nil {
		return nil, err
	}
	blank, err := enc.Append(nil, []byte(" "))
	if err != nil || len(blank) != 1 {
		return nil, fmt.Errorf("%s has more than one byte for a blank, but the positions of these records are bytes", enc.codec.Name)
	}
	return &FieldCodec{codec: enc.codec, enc: enc, blank: blank[0]}, nil
}

// Blank is the byte of a blank.
func (f *FieldCodec) Blank() byte { return f.blank }

// IsEBCDIC reports whether the encoding is a code page of mainframes.
func (f *FieldCodec) IsEBCDIC() bool { return f.blank != ' ' }

// Decode returns the text of a field.
func (f *FieldCodec) Decode(raw string) (string, error) {
	text, ok := f.decode(raw)
	if !ok {
		return "", fmt.Errorf("it is not valid %s (see the key encoding)", strings.Replace(f.codec.Name, "utf-8", plainText, 1))
	}
	return text, nil
}

func (f *FieldCodec) decode(raw string) (text string, ok bool) {
	switch {
	case f.codec.utf8:
		return raw, utf8.ValidString(raw)
	case f.codec.page == nil:
		decoded, _, err := transform.String(f.codec.decoder(), raw)
		return decoded, err == nil && utf8.ValidString(decoded)
	}
	decoded := make([]byte, 0, len(raw)+len(raw)/2)
	for i := range len(raw) {
		r := f.codec.page.DecodeByte(raw[i])
		if r == utf8.RuneError || f.codec.isGap(r) {
			return "", false
		}
		decoded = utf8.AppendRune(decoded, r)
	}
	return string(decoded), true
}

// Append appends the bytes of a text.
func (f *FieldCodec) Append(dst []byte, text string) ([]byte, error) {
	if f.codec.utf8 && !utf8.ValidString(text) {
		return dst, fmt.Errorf("the text is not valid %s", plainText)
	}
	return f.enc.Append(dst, []byte(text))
}
