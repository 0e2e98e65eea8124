package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Proxy is a proxy that signs users in, as settings.API has it.
type Proxy struct {
	From                     []netip.Prefix
	UserHeader, GroupsHeader string
	Operators, Viewers       []string
}

const maxUser = 200

// identify returns the user of a request of the proxy. known is false if the
// request has none: then it may have a token or a session.
func (p Proxy) identify(r *http.Request) (who Caller, known bool, refused *Refusal) {
	if len(p.From) == 0 {
		return Caller{}, false, nil
	}
	users := r.Header.Values(p.UserHeader)
	switch {
	case !p.isFrom(r.RemoteAddr) && (len(users) > 0 || p.GroupsHeader != "" && len(r.Header.Values(p.GroupsHeader)) > 0):
		return Caller{}, false, refuse(http.StatusForbidden, "only the proxy (api.proxy.from) may send the headers that name a user")
	case len(users) == 0 || len(users) == 1 && users[0] == "":
		return Caller{}, false, nil
	case len(users) > 1:
		return Caller{}, false, refuse(http.StatusForbidden, "there are several headers "+p.UserHeader+": the proxy must remove those that it receives")
	case len(users[0]) > maxUser || !isPlain(users[0]):
		return Caller{}, false, refuse(http.StatusForbidden, "the header "+p.UserHeader+" has no plain name of a user")
	}
	who.Name = users[0]
	switch {
	case p.lists(p.Operators, who.Name, r):
		who.Role = settings.Operator
	case p.lists(p.Viewers, who.Name, r):
		who.Role = settings.Viewer
	default:
		return Caller{}, false, refuse(http.StatusForbidden, "user "+who.Name+" is neither an operator nor a viewer (api.proxy.operators, api.proxy.viewers)")
	}
	return who, true, nil
}

// isFrom compares the address of the connection, never a forwarded one.
func (p Proxy) isFrom(remote string) bool {
	address, err := netip.ParseAddr(HostOf(remote))
	return err == nil && slices.ContainsFunc(p.From, func(n netip.Prefix) bool { return n.Contains(address.Unmap().WithZone("")) })
}

func (p Proxy) lists(list []string, user string, r *http.Request) bool {
	if slices.Contains(list, "*") || !strings.HasPrefix(user, "@") && slices.Contains(list, user) {
		return true
	}
	if p.GroupsHeader == "" {
		return false
	}
	for _, value := range r.Header.Values(p.GroupsHeader) {
		for group := range strings.SplitSeq(value, ",") {
			if group = strings.TrimSpace(group); group != "" && slices.Contains(list, "@"+group) {
				return true
			}
		}
	}
	return false
}

func isPlain(text string) bool {
	return IsText(text) && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}
