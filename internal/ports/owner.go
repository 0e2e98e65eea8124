package ports

import (
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ParseOwner reads String; an unreadable text is on an unknown host, so its lease decides.
func ParseOwner(text string) core.Owner {
	p := strings.Split(text, "/")
	if text == "" {
		return core.Owner{}
	}
	if len(p) != 5 {
		return core.Owner{Nonce: text}
	}
	return core.Owner{Host: p[0], Boot: p[1], PID: atoi(p[2]), Start: p[3], Nonce: p[4]}
}

func atoi(s string) int {
	i, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return i
}
