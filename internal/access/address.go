package access

import (
	"net"
	"strings"
	"unicode/utf8"
)

// HostOf returns the host of HOST:PORT.
func HostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// IsText reports whether a text from a request can be stored and compared.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
