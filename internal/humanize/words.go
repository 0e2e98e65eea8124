// Package humanize writes numbers, times, lists and long texts as people read them, and reads times as people write
// them.
//
// It imports the standard library only.
package humanize

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Count formats a number with commas: 1,234,567.
func Count[N ~int | ~int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// Duration formats a duration with about three digits: 12ms, 1.25s, 3m05s, 2h10m.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond)/time.Millisecond)
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// Time formats a time in UTC.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// Plural formats "1 row", "2,000 rows".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + one + "s"
}

// Join puts commas between words.
func Join(words []string) string { return strings.Join(words, ", ") }

// Clip cuts a text at a number of characters.
func Clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// Seconds formats a number of seconds like Duration.
func Seconds(seconds float64) string {
	return Duration(time.Duration(seconds * float64(time.Second)))
}

// OneLine joins lines, by a semicolon after a sentence, so that joined causes
// can be distinguished.
func OneLine(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if b.Len() > 0 {
			last, _ := utf8.DecodeLastRuneInString(b.String())
			if (unicode.IsLetter(last) || unicode.IsDigit(last) || last == ')') && line[0] != ')' {
				b.WriteByte(';')
			}
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// MaxNames is the longest list that Few returns.
const MaxNames = 8

// Few returns the first names, and the number of the others, including more.
func Few(names []string, more int) []string {
	if len(names)+more <= MaxNames {
		return names
	}
	return append(names[:MaxNames-1:MaxNames-1], fmt.Sprintf("%d more", len(names)+more-MaxNames+1))
}

// And formats "a, b and c".
func And(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Quote quotes a word for a POSIX shell, if it needs that.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:@%+,", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
