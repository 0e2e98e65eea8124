package settings

import (
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
)

// othersRead are the permissions with which any user of the machine reads a file.
const othersRead = 0o004

// warnReadable warns of a settings file that contains a secret and that every user of the machine
// may read: the token of a client, or a database URL with a password (rule AP4). On Windows the
// permissions of a file do not show that.
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
		return // a missing file fails when it is read
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
