package process

import (
	"slices"
	"strings"
)

// Allowed returns of an environment what a process may see that a client asks for: where programs, home
// and temporary files are, and the language and time zone.
func Allowed(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !strings.HasPrefix(name, "LC_") &&
			!slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"}, name)
	})
}
