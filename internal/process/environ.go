package process

import (
	"slices"
	"strings"
)

// Allowed returns the part of an environment that a process requested by a client may see: the locations of
// programs, home and temporary files, and the language and time zone.
func Allowed(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !strings.HasPrefix(name, "LC_") &&
			!slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"}, name)
	})
}
