package access

import (
	"net/http"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// UserOf returns the user of a request in an application that has a sign-in of its own (rule OP19).
// Without a name or a role the request is refused.
type UserOf func(r *http.Request) (name string, role settings.Role)

func (of UserOf) identify(r *http.Request) (Caller, *Refusal) {
	name, role := of(r)
	switch {
	case name == "" || role != settings.Operator && role != settings.Viewer:
		return Caller{}, refuse(http.StatusForbidden, "the application gives you no access to its batch jobs: ask for the role of a viewer or an operator")
	case len(name) > maxUser || !isPlain(name):
		return Caller{}, refuse(http.StatusForbidden, "the application gives you a name that is not plain text of at most 200 bytes")
	}
	return Caller{Name: name, Role: role, user: true}, nil
}
