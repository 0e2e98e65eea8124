// Package urlpath distinguishes the URL of a file in another place, such as s3://bucket/key, from a path of the disk.
//
// It imports the standard library only.
package urlpath

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is the kind of the components that are places.
const Kind = "place"

// Schemes have places, perhaps in another program than this.
func Schemes() []string { return []string{"s3"} }

// Is reports whether a text is a URL, and not a path of the disk.
func Is(text string) bool { return Scheme(text) != "" }

// Scheme is the one of a URL, in lower case; empty for a path of the disk.
func Scheme(text string) string {
	scheme, _, is := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !is || len(scheme) < 2 || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return ""
	}
	return scheme
}

// Text is the one text of a URL (rule L1a): scheme and bucket in lower case, the key as it is. Other URLs than of
// places, and those with a user, are errors without their secrets.
func Text(url string) (string, error) {
	scheme := Scheme(url)
	_, rest, _ := strings.Cut(url, "://")
	if !slices.Contains(Schemes(), scheme) {
		return "", foreign(scheme, url[:len(url)-len(rest)], rest)
	}
	bucket, key, found := strings.Cut(rest, "/")
	if strings.Contains(bucket, "@") {
		return "", fmt.Errorf("%s is a URL with a user, which paths may not have: credentials belong in places of surfin.yaml", safe(url[:len(url)-len(rest)], rest))
	}
	if strings.Contains(strings.ToLower(key), "x-amz-signature=") {
		return "", fmt.Errorf("%s is signed: leave out ? and the rest, credentials belong in places of surfin.yaml", safe(url[:len(url)-len(rest)], rest))
	}
	if bucket == "" || !found || key == "" {
		return "", fmt.Errorf("%s names no file: it is written %s://bucket/key", url, scheme)
	}
	if strings.ContainsAny(url, "\x00\n\r\t") {
		return "", errors.New("a URL has no control characters")
	}
	return scheme + "://" + strings.ToLower(bucket) + "/" + key, nil
}

func foreign(scheme, head, rest string) error {
	cure := "copy the file to a disk first, or mount its place as a folder"
	switch scheme {
	case "file":
		cure = "write the path itself: " + rest
	case "http", "https":
		cure = "the reader `http` reads the pages of an API; fetch a file before the job"
	}
	return fmt.Errorf("%s is a URL, but only paths of a disk and %s:// are read and written; %s", safe(head, rest), strings.Join(Schemes(), "://, "), cure)
}

// safe leaves out a user and a signature.
func safe(head, rest string) string {
	rest, _, _ = strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return head + rest
}

// Folder is the one text of a URL that others begin with, without a slash at its end.
func Folder(url string) (string, error) {
	text, err := Text(strings.TrimSuffix(url, "/") + "/x")
	return strings.TrimSuffix(text, "/x"), err
}

// Abs is a URL as it is, and filepath.Abs of a path of the disk.
func Abs(path string) (string, error) {
	if Is(path) {
		return path, nil
	}
	return filepath.Abs(path)
}

// Below reports whether a URL is a folder's, or below it.
func Below(url, folder string) bool {
	folder = strings.TrimSuffix(folder, "/")
	return url == folder || strings.HasPrefix(url, folder+"/")
}
