// Package secret masks passwords in texts for people or logs.
//
// It imports the standard library only.
package secret

import (
	"regexp"
	"strings"
)

const mask = "***"

// The pattern of a URL's password extends to the last @, as an unescaped password may contain
// anything else.
var (
	inURL   = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:"']*:)[^\s"']*@`)
	inQuery = regexp.MustCompile(`(?i)\b((?:ssl)?password|passwd|pwd)=[^\s&"'` + "`" + `]+`)

	lineURL   = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^/?#@:]*:).*@`)
	noAt      = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:"']*:)[^0-9\s][^@]*$`)
	lineValue = regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*(?:pass|pwd|secret|token|api_?key|credential)[A-Za-z0-9_-]*["']?\s*[:=]\s*)[^\s].*$`)
)

// Text masks the passwords of URLs and connection strings in a message.
func Text(text string) string {
	if strings.Contains(text, "://") {
		text = inURL.ReplaceAllStringFunc(text, func(url string) string {
			if strings.HasSuffix(url, "://USER:PASSWORD@") { // of our own messages
				return url
			}
			return inURL.ReplaceAllString(url, "${1}"+mask+"@")
		})
	}
	if strings.Contains(text, "=") {
		text = inQuery.ReplaceAllString(text, "${1}="+mask)
	}
	return text
}

// Line masks a line of settings that is quoted because of a mistake in it: anything that may be a secret is
// masked, up to the line's end if necessary.
func Line(line string) string {
	line = lineURL.ReplaceAllString(line, "${1}"+mask+"@")
	if !strings.Contains(line, mask) {
		line = noAt.ReplaceAllString(line, "${1}"+mask)
	}
	line = lineValue.ReplaceAllString(line, "${1}"+mask)
	return Text(line)
}
