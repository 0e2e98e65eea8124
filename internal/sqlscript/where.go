package sqlscript

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Where says for a message where statement i of a text is that failed: its number, the line and the text
// of that line. position is the character, from 1 on, at which the database met the error, counted in the
// whole text; 0 means unknown. It decides the statement as well.
func Where(text string, statements []Statement, i, position int) string {
	if len(statements) == 0 {
		return ""
	}
	i = min(max(i, 0), len(statements)-1)
	line := statements[i].Line
	if offset := byteOf(text, position); offset >= 0 {
		line = 1 + strings.Count(text[:offset], "\n")
		for n, s := range statements {
			if s.Offset <= offset {
				i = n
			}
		}
	}
	lines := strings.Split(text, "\n")
	const maxText = 60
	shown := strings.TrimSpace(lines[min(line, len(lines))-1])
	if len(shown) > maxText {
		shown = strings.ToValidUTF8(shown[:maxText], "") + "…"
	}
	if len(statements) == 1 {
		return fmt.Sprintf("line %d (%s)", line, shown)
	}
	return fmt.Sprintf("statement %d of %d, line %d (%s)", i+1, len(statements), line, shown)
}

// byteOf returns the byte of a character, counted from 1 on; -1: the text has none.
func byteOf(text string, position int) int {
	if position < 1 || position > utf8.RuneCountInString(text) {
		return -1
	}
	n := 0
	for at := range text {
		if n++; n == position {
			return at
		}
	}
	return -1
}
