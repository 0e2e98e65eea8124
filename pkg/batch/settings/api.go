package settings

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"strings"
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
	// BasePath is the path below the host, such as /surfin; empty means none.
	BasePath string
	// Proxy signs users in. Without From its headers do not count.
	Proxy struct {
		// From has the addresses of its connections.
		From []netip.Prefix
		// UserHeader has the user's name, and GroupsHeader the names of groups, separated by commas.
		UserHeader, GroupsHeader string
		// Operators and Viewers are users, groups as @NAME, or * for every user.
		Operators, Viewers []string
	}
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

// Valid in an environment variable, and for basic authentication.
var clientName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// As in RFC 6750.
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

func proxySettings() []setting {
	return []setting{
		{"api.proxy.from", "", "addresses of a proxy that signs users in, or networks such as 10.1.0.0/16, separated by commas; its headers count from there only, and requests that have them from elsewhere are refused; empty: they count for nothing",
			func(s *Settings, text string) (err error) { s.API.Proxy.From, err = networks(text); return err }},
		{"api.proxy.user_header", "", "header of the proxy with the name of the user, such as X-Forwarded-User; the proxy must remove it from the requests that it receives",
			func(s *Settings, text string) (err error) { s.API.Proxy.UserHeader, err = headerName(text); return err }},
		{"api.proxy.groups_header", "", "header of the proxy with the groups of the user, separated by commas; empty: none",
			func(s *Settings, text string) (err error) {
				s.API.Proxy.GroupsHeader, err = headerName(text)
				return err
			}},
		{"api.proxy.operators", "", "who may do everything: names of users, @NAME for a group, or * for every user, separated by commas",
			func(s *Settings, text string) (err error) { s.API.Proxy.Operators, err = people(text); return err }},
		{"api.proxy.viewers", "", "who may read, as api.proxy.operators",
			func(s *Settings, text string) (err error) { s.API.Proxy.Viewers, err = people(text); return err }},
		{"api.base_path", "", "path of the server below its host, such as /surfin, if a proxy serves others there as well",
			func(s *Settings, text string) (err error) { s.API.BasePath, err = basePath(text); return err }},
	}
}

func listOf(text string) (list []string) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			list = append(list, entry)
		}
	}
	return list
}

func networks(text string) (list []netip.Prefix, err error) {
	for _, entry := range listOf(text) {
		network, err := netip.ParsePrefix(entry)
		if address, e := netip.ParseAddr(entry); e == nil {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || network.Addr().Zone() != "" {
			return nil, fmt.Errorf("%q is not an address or a network (such as 127.0.0.1, 10.1.0.0/16)", entry)
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

var header = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

func headerName(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if name := http.CanonicalHeaderKey(text); header.MatchString(text) && name != "Authorization" && name != "Cookie" && name != "Host" {
		return name, nil
	}
	return "", fmt.Errorf("%q cannot be the name of such a header", text)
}

func people(text string) ([]string, error) {
	list := listOf(text)
	for _, entry := range list {
		if entry == "@" {
			return nil, errors.New("@ has no name of a group")
		}
	}
	return list, nil
}

func basePath(text string) (string, error) {
	if clean := strings.TrimSuffix(text, "/"); clean == "" || strings.HasPrefix(clean, "/") && path.Clean(clean) == clean && plainPath.MatchString(clean) {
		return clean, nil
	}
	return "", fmt.Errorf("%q is not a path such as /surfin", text)
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._~-]+$`)
