package process

import (
	"slices"
	"strings"
)

// Allowed returns the environment that a client's process may see.
func Allowed(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !strings.HasPrefix(name, "LC_") &&
			!slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"}, name)
	})
}
