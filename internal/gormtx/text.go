package gormtx

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Storable makes any text one that every database takes, of most bytes and a note about
// those that are cut off: a broken encoding, a NUL and a whole file are no reason why
// something cannot be recorded.
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

// ValidText replaces what no database takes in a text: a broken encoding, a NUL.
func ValidText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
