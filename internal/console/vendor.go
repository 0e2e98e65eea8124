package console

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed static/vendor
var vendored embed.FS

// Foreign is a file of others, as it was published, which the binary carries.
type Foreign struct {
	// File is its name in static/vendor.
	File string
	// Package, Version and Path are where it is in the npm registry.
	Package, Version, Path string
	License                string
	// Text is the file with the licence.
	Text   string
	SHA256 string
}

// Foreigners are all files of others.
func Foreigners() []Foreign {
	const htmx, version, license, text = "htmx.org", "4.0.1", "0BSD", "htmx.LICENSE"
	return []Foreign{
		{"htmx.min.js", htmx, version, "dist/htmx.min.js", license, text, "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"},
		{"htmx.LICENSE", htmx, version, "LICENSE", license, text, "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38"},
	}
}

// Licenses returns the licences of all files of others, for people.
func Licenses() (string, error) {
	var b strings.Builder
	shown := map[string]bool{}
	for _, f := range Foreigners() {
		if shown[f.Text] {
			continue
		}
		shown[f.Text] = true
		text, err := vendored.ReadFile("static/vendor/" + f.Text)
		if err != nil {
			return "", fmt.Errorf("read the license of %s: %w", f.Package, err)
		}
		fmt.Fprintf(&b, "%s %s (%s)\n\n%s\n", f.Package, f.Version, f.License, text)
	}
	return b.String(), nil
}
