package gormtx

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Storable turns any text into one that every database accepts, of at most most bytes, with a note
// about the rest.
func Storable(text string, most int) string {
	text = ValidText(text)
	if len(text) <= most {
		return text
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", text[:cut], len(text)-cut)
}

// ValidText replaces the parts of a text that no database accepts: a broken encoding, a NUL.
func ValidText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
