package row

import (
	"fmt"
	"strings"
	"time"
)

var layoutTokens = [...]struct{ pattern, layout string }{
	{"yyyy", "2006"}, {"MM", "01"}, {"dd", "02"}, {"HH", "15"}, {"mm", "04"}, {"ss", "05"},
	{"SSSSSS", "000000"}, {"SSS", "000"}, {"XXX", "Z07:00"}, {"yy", "06"}, {"M", "1"}, {"d", "2"},
	{"MMMM", "January"}, {"MMM", "Jan"}, {"EEEE", "Monday"}, {"EEE", "Mon"}, {"hh", "03"}, {"h", "3"}, {"a", "PM"}, {"XX", "Z0700"},
}

const layoutLetters = "yyyy yy MMMM MMM MM M EEEE EEE dd d HH hh h a mm ss SSS SSSSSS XXX XX"

// Layout translates a pattern into Go's: yyyy, yy (69 to 99 are 19xx, 00 to 68 20xx), MMMM January, MMM Jan,
// MM, M, EEEE Monday, EEE Mon, dd, d, HH, hh and h with a (AM, PM), mm, ss, SSS, SSSSSS, XXX +01:00, XX +0100.
// Quoted text and non-letters stand for themselves; another letter or digit is an error.
func Layout(format string) (string, error) {
	var out strings.Builder
	for rest := format; rest != ""; {
		if rest[0] == '\'' {
			end := strings.IndexByte(rest[1:], '\'')
			if end < 0 {
				return "", fmt.Errorf("format %q: a quote is not closed", format)
			}
			if err := plainText(format, rest[1:1+end]); err != nil {
				return "", err
			}
			out.WriteString(rest[1 : 1+end])
			rest = rest[end+2:]
			continue
		}
		run := letterRun(rest)
		if run == 0 {
			if err := plainText(format, rest[:1]); err != nil {
				return "", err
			}
			out.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		if before := out.String(); rest[0] == 'S' && !strings.HasSuffix(before, ".") && !strings.HasSuffix(before, ",") {
			return "", fmt.Errorf("format %q: %s must follow a point or a comma: ss.SSS", format, rest[:run])
		}
		layout, ok := tokenLayout(rest[:run])
		if rest[:run] == "T" || rest[:run] == "Z" {
			layout, ok = rest[:run], true
		}
		if !ok {
			return "", fmt.Errorf("format %q: %q is unknown (allowed: %s, other text in single quotes; or epoch, epoch_ms, epoch_us)", format, rest[:run], layoutLetters)
		}
		out.WriteString(layout)
		rest = rest[run:]
	}
	return out.String(), nil
}

func letterRun(s string) int {
	c := s[0]
	if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
		return 0
	}
	n := 1
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

func tokenLayout(run string) (string, bool) {
	for _, t := range layoutTokens {
		if t.pattern == run {
			return t.layout, true
		}
	}
	return "", false
}

// Go's layouts would read it as a time.
func plainText(format, text string) error {
	one, other := time.Date(2034, 5, 17, 20, 18, 49, 0, time.UTC), time.Date(1978, 11, 9, 7, 33, 12, 0, time.FixedZone("X", 3600))
	if one.Format(text) != text || other.Format(text) != text || strings.ContainsAny(text, "0123456789_") {
		return fmt.Errorf("format %q: %q is not allowed in a format", format, text)
	}
	return nil
}
