package operator

import (
	"os"
	"os/user"
)

// currentActor is the user and the host.
func currentActor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
