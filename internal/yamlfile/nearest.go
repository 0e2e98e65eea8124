package yamlfile

import (
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
)

// Suggest returns the name that was probably meant, and the list of names.
func Suggest(name string, names []string) string {
	hint := ""
	if near := nearest.Name(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	if len(names) == 0 {
		return hint
	}
	return strings.TrimSpace(hint + " allowed: " + strings.Join(names, ", "))
}
