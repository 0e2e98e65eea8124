package settings

import (
	"regexp"
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

// Valid in an environment variable, and for basic authentication.
var clientName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// As in RFC 6750.
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
