package secret

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// MinKnown is the minimum length in bytes of a secret that is masked without a request, such as the password
// of a database: the mask of a shorter one would hide much else.
const MinKnown = 8

// Learn masks a value that the process knows to be secret, from now on. A value that is too short, or that
// equals one of names, such as the user, is not masked: see [Vault.Unmasked].
func (v *Vault) Learn(what, value string, names ...string) {
	switch {
	case v == nil || value == "":
	case len(value) < MinKnown:
		v.note(fmt.Sprintf("%s has fewer than %d bytes: it is not masked in messages, logs and answers; choose a longer one", what, MinKnown))
	case slices.Contains(names, value):
		v.note(what + " is the same as the name of its user or database: it is not masked in messages, logs and answers; choose another one")
	default:
		v.remember(value)
	}
}

func (v *Vault) note(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Contains(v.unmasked, text) {
		v.unmasked = append(v.unmasked, text)
	}
}

// Unmasked lists the known secrets that are not masked, with the reason. No text contains a value.
func (v *Vault) Unmasked() []string {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.unmasked)
}

// LearnURL masks the passwords in the URL of a server, such as a database or a proxy.
func (v *Vault) LearnURL(what, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "sqlite" {
		return
	}
	names := []string{u.User.Username(), strings.Trim(u.Path, "/")}
	query := u.Query()
	names = append(names, query.Get("user"), query.Get("dbname"))
	if password, has := u.User.Password(); has {
		v.Learn("the password of "+what, password, names...)
	}
	for _, key := range []string{"password", "sslpassword"} {
		v.Learn("the "+key+" of "+what, query.Get(key), names...)
	}
}

// learnEnvironment masks the secrets of an environment, found by the names of its variables: secrets of job
// files, proxies, and the password of PostgreSQL's own variables.
func (v *Vault) learnEnvironment(environ []string) {
	values := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
		switch {
		case strings.HasPrefix(name, "SURFIN_SECRET_"):
			if len(value) >= MinKnown { // a shorter one is masked when it is looked up
				v.remember(strings.TrimRight(value, "\r\n"))
			}
		case slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"}, strings.ToUpper(name)):
			v.LearnURL(name, value)
		}
	}
	v.Learn("the variable PGPASSWORD", values["PGPASSWORD"], values["PGUSER"], values["PGDATABASE"])
}

// own matches the variables that configure this program.
var own = regexp.MustCompile(`^(SURFIN_[A-Za-z0-9_]*|DATABASE_URL)$`)

// IsOwn reports whether an environment variable configures this program: started processes do not get it.
func IsOwn(name string) bool { return own.MatchString(name) }

// Environ returns an environment, in the form of os.Environ, for a process that this program starts: without
// the variables that configure the program and those that hold a secret. A nil Vault knows no secrets.
func (v *Vault) Environ(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return IsOwn(name) || v.Values(value) != value
	})
}

// namesOwn finds such a variable in a text for a shell.
var namesOwn = regexp.MustCompile(`\$\{?(SURFIN_[A-Za-z0-9_]*|DATABASE_URL|PGPASSWORD)\b`)

// NamedIn returns the variables that a text for a shell names but a process of this program does not get,
// except the given ones.
func NamedIn(script string, given map[string]string) []string {
	var names []string
	for _, found := range namesOwn.FindAllStringSubmatch(script, -1) {
		if _, is := given[found[1]]; !is && !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}
