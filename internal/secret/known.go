package secret

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// MinKnown is the minimum bytes of a secret masked without a request: a shorter mask would hide
// much else.
const MinKnown = 8

// Learn masks a known secret, unless too short or one of names: see [Vault.Unmasked].
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

// Unmasked lists known secrets that are not masked, with reasons but without values.
func (v *Vault) Unmasked() []string {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.unmasked)
}

// LearnURL masks the passwords in a server's URL.
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

var own = regexp.MustCompile(`^(SURFIN_[A-Za-z0-9_]*|DATABASE_URL)$`)

// IsOwn reports a variable of this program, which started processes do not get.
func IsOwn(name string) bool { return own.MatchString(name) }

// Environ returns an environment without this program's variables and secrets; the Vault may be
// nil.
func (v *Vault) Environ(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return IsOwn(name) || v.Values(value) != value
	})
}

var namesOwn = regexp.MustCompile(`\$\{?(SURFIN_[A-Za-z0-9_]*|DATABASE_URL|PGPASSWORD)\b`)

// NamedIn returns the variables in a shell text that its process does not get.
func NamedIn(script string, given map[string]string) []string {
	var names []string
	for _, found := range namesOwn.FindAllStringSubmatch(script, -1) {
		if _, is := given[found[1]]; !is && !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}
