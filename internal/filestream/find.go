package filestream

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// CheckPattern refuses a text that is not a pattern of files.
func CheckPattern(glob string) error {
	switch _, bad := filepath.Match(glob, ""); {
	case glob == "":
		return errors.New("the pattern is missing")
	case bad != nil:
		return fmt.Errorf("%q is not a pattern: a [ needs its ], and a range its two ends (a literal [ is written \\[)", glob)
	case strings.Contains(glob, "**"):
		return fmt.Errorf("%q: ** is not supported; name the folders, such as */*.csv", glob)
	}
	return nil
}
