package row

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// Formats of bytes.
const (
	formatBase64 = "base64"
	formatHex    = "hex"
)

// No base64 text begins so.
const hexPrefix = `\x`

// HexText is PostgreSQL's: \x and digits.
func HexText(b string) string {
	text := make([]byte, 0, len(hexPrefix)+hex.EncodedLen(len(b)))
	return string(hex.AppendEncode(append(text, hexPrefix...), []byte(b)))
}

// IsHexText reports whether it begins like a [HexText].
func IsHexText(text string) bool { return strings.HasPrefix(text, hexPrefix) }

// Base64, or hex by format or \x.
func parseBytes(format, text string) (v Value, why string) {
	digits, isHex := strings.CutPrefix(text, hexPrefix)
	if format == formatHex && !isHex {
		digits, isHex = strings.TrimPrefix(text, "0x"), true
	}
	if isHex {
		b, err := hex.DecodeString(digits)
		if err != nil {
			return Value{}, "expected two hexadecimal digits for each byte"
		}
		return BytesValue(b), ""
	}
	b, err := decodeBase64(text)
	if err != nil {
		why = "expected base64"
		if _, err := hex.DecodeString(strings.TrimPrefix(text, "0x")); err == nil {
			why = "expected base64; for hex set format: hex"
		}
		return Value{}, why
	}
	return BytesValue(b), ""
}

// With + and /, or the URL alphabet; = is optional.
func decodeBase64(text string) ([]byte, error) {
	alphabet := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		alphabet = base64.RawURLEncoding
	}
	if strings.ContainsAny(text, "\r\n") { // else skipped
		return nil, errors.New("a line end in base64")
	}
	digits := strings.TrimRight(text, "=")
	if padding := len(text) - len(digits); padding > 2 || padding > 0 && len(text)%4 != 0 {
		return nil, errors.New("too many = in base64")
	}
	return alphabet.Strict().DecodeString(digits)
}

func appendBytes(format string, dst []byte, v Value) []byte {
	if format == formatHex {
		return hex.AppendEncode(dst, []byte(v.text))
	}
	return v.AppendText(dst)
}
