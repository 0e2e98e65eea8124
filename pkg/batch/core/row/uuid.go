package row

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID has 128 bits; canonical are 8-4-4-4-12 lower-case hex digits.
type UUID [16]byte

const (
	uuidLen   = 36
	uuidForms = "expected 8-4-4-4-12 digits in hex, also in braces, after urn:uuid:, or without hyphens"
)

// ParseUUID reads either case, braces, urn:uuid:, and 32 digits.
func ParseUUID(text string) (UUID, error) {
	id, ok := canonicalUUID(text)
	if !ok {
		return UUID{}, fmt.Errorf("%s is not a uuid (%s)", quoteShort(text), uuidForms)
	}
	return uuidOf(id), nil
}

func uuidOf(text string) (u UUID) {
	for i, at := 0, 0; i < len(u); i++ {
		if text[at] == '-' {
			at++
		}
		u[i] = hexDigit(text[at])<<4 | hexDigit(text[at+1])
		at += 2
	}
	return u
}

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

func canonicalUUID(text string) (string, bool) {
	if isCanonicalUUID(text) {
		return text, true
	}
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimPrefix(text, "urn:uuid:")
	if len(text) > 1 && text[0] == '{' && text[len(text)-1] == '}' {
		text = text[1 : len(text)-1]
	}
	if len(text) == 32 && !strings.Contains(text, "-") {
		text = text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
	}
	return text, isCanonicalUUID(text)
}

func isCanonicalUUID(text string) bool {
	if len(text) != uuidLen {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// AppendText appends the canonical text.
func (u UUID) AppendText(dst []byte) ([]byte, error) {
	var digits [2 * len(UUID{})]byte
	hex.Encode(digits[:], u[:])
	for i, end := 0, 0; i < len(digits); i = end {
		if i > 0 {
			dst = append(dst, '-')
		}
		end = i + 4
		if i == 0 {
			end = 8
		} else if i == 20 {
			end = len(digits)
		}
		dst = append(dst, digits[i:end]...)
	}
	return dst, nil
}

// String is the canonical text.
func (u UUID) String() string {
	text, _ := u.AppendText(make([]byte, 0, uuidLen)) //nolint:errcheck // there is none
	return string(text)
}

// MarshalText writes the canonical text.
func (u UUID) MarshalText() ([]byte, error) { return u.AppendText(nil) }

// UnmarshalText reads the texts of ParseUUID.
func (u *UUID) UnmarshalText(text []byte) error {
	v, err := ParseUUID(string(text))
	if err == nil {
		*u = v
	}
	return err
}
