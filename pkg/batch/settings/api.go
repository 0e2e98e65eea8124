package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// API configures the REST API.
type API struct {
	// Listen is HOST:PORT; without clients a loopback address.
	Listen string
	// Clients may call the API; without any, it is read-only on this machine.
	Clients []Client
	// Paths are absolute folders for clients' paths, in addition to the job file's.
	Paths []string
	// Rate is a client's average requests per second.
	Rate int
}

// Health configures a worker's probes.
type Health struct {
	// Listen is HOST:PORT; empty disables the probes.
	Listen string
}

// Client may call the API with a bearer token, or name and token as user and password.
type Client struct {
	Name  string
	Role  Role
	Token string
}

// String omits the token.
func (c Client) String() string { return string(c.Role) + " " + c.Name }

// Role of a client.
type Role string

// The roles.
const (
	Operator Role = "operator" // everything
	Viewer   Role = "viewer"   // read
)

// minToken is in characters.
const minToken = 16

func tokenSections() map[string]Role {
	return map[string]Role{"api.operator_tokens": Operator, "api.viewer_tokens": Viewer}
}

func apiSettings() []setting {
	return []setting{
		{"api.listen", "127.0.0.1:8321", "HOST:PORT of `surfin serve`; without tokens a loopback address",
			func(s *Settings, text string) error {
				s.API.Listen = text
				if text == "" {
					return errors.New("it is empty: HOST:PORT is needed")
				}
				return listenAddress(text)
			}},
		{"health.listen", "", "HOST:PORT at which a worker answers `/livez` and `/readyz`, without a token; empty: nowhere. `surfin serve` answers them at api.listen",
			func(s *Settings, text string) error {
				if s.Health.Listen = text; text == "" {
					return nil
				}
				return listenAddress(text)
			}},
		{"api.paths", "", "folders that the paths of clients may be in, in addition to the folder of the job file: absolute, separated by `:`; none is the default",
			func(s *Settings, text string) error {
				for _, path := range filepath.SplitList(text) {
					if !filepath.IsAbs(path) {
						return fmt.Errorf("%q is not an absolute path (folders are separated by %c)", path, filepath.ListSeparator)
					}
					s.API.Paths = append(s.API.Paths, filepath.Clean(path))
				}
				return nil
			}},
		{"api.rate", "50", "requests a second that one client of the API may make",
			func(s *Settings, text string) (err error) {
				if s.API.Rate, err = strconv.Atoi(text); err != nil || s.API.Rate < 1 || s.API.Rate > 1e6 {
					return fmt.Errorf("%q is not a number of requests from 1 to 1000000", text)
				}
				return nil
			}},
	}
}

// Valid in an environment variable, and for basic authentication.
var clientName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// As in RFC 6750.
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// Messages never contain a token.
func (l *loader) clients(s *Settings) {
	owner := map[string]string{}
	for _, section := range sortedKeys(tokenSections()) {
		for _, name := range l.names(section) {
			key := section + "." + name
			token := l.values[key]
			switch {
			case !clientName.MatchString(name):
				l.wrong(key, fmt.Errorf("%q is not a valid client name (letters, digits, _ and -)", name))
			case len(token) < minToken || !bearer.MatchString(token):
				l.wrong(key, fmt.Errorf("a token has at least %d characters: letters, digits and ._~+/-", minToken))
			case owner[token] != "":
				l.wrong(key, fmt.Errorf("it has the token of %s: each client needs its own", owner[token]))
			case slices.ContainsFunc(s.API.Clients, func(c Client) bool { return c.Name == name }):
				l.wrong(key, fmt.Errorf("client %s has a token in another role already", name))
			default:
				owner[token] = key
				s.API.Clients = append(s.API.Clients, Client{Name: name, Role: tokenSections()[section], Token: token})
			}
		}
	}
}

func tokenKey(name string) string {
	for section := range tokenSections() {
		if client, ok := strings.CutPrefix(name, variable(section)+"_"); ok && client != "" {
			return section + "." + strings.ToLower(client)
		}
	}
	return ""
}

func (f *settingsFile) tokens(key yamlfile.Entry, path string) {
	f.each(key.Value, path, func(client yamlfile.Entry, name string) {
		if !clientName.MatchString(name) {
			f.problem(client.Key, fmt.Errorf("%s: %q is not a valid client name (letters, digits, _ and -)", path, name))
			return
		}
		f.scalar(client, path+"."+name)
	})
}

// hasTokens: the line, or one up to its top-level key, names a section of tokens.
func (f *settingsFile) hasTokens(line int) bool {
	for at := min(line, len(f.lines)) - 1; at >= 0; at-- {
		text := f.lines[at]
		if strings.Contains(strings.ToLower(text), "token") {
			return true
		}
		if at < line-1 && text != "" && !strings.ContainsAny(text[:1], " \t-#}]") {
			return false
		}
	}
	return false
}

var afterKey = regexp.MustCompile(`^(\s*[A-Za-z0-9_-]+\s*:)?.*$`)

func withoutValue(line string) string { return afterKey.ReplaceAllString(line, "${1} ***") }
