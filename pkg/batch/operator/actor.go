package operator

import (
	"os"
	"os/user"
)

// CurrentActor is the user and the host: who acts where nothing else is said.
func CurrentActor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
