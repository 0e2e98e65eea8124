package settings

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
)

const othersRead = 0o004

// warnReadable warns of a world-readable settings file with a token or a URL with a password (rule AP4).
// Windows permissions do not show it.
func (l *loader) warnReadable(path string, values map[string]string) {
	if runtime.GOOS == "windows" {
		return
	}
	var keys []string
	for _, key := range sortedKeys(values) {
		if isToken(key) || hasPassword(key, values[key]) {
			keys = append(keys, key)
		}
	}
	info, err := os.Stat(path)
	if len(keys) == 0 || err != nil || info.Mode().Perm()&othersRead == 0 {
		return
	}
	l.settings.Warnings = append(l.settings.Warnings, fmt.Sprintf("%s has secrets (%s) and every user of this machine may read it (mode %04o): chmod 600 %s, or move them into the environment",
		path, strings.Join(keys, ", "), info.Mode().Perm(), path))
}

func isToken(key string) bool {
	for section := range tokenSections() {
		if strings.HasPrefix(key, section+".") {
			return true
		}
	}
	return false
}

func hasPassword(key, text string) bool {
	if !strings.HasPrefix(key, "databases.") || !strings.HasSuffix(key, ".url") {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}
