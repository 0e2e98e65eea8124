package api

import (
	"net"
	"strings"
	"unicode/utf8"
)

func isText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
