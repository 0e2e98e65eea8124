package jobfile

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// describe returns the yamlfile.Document.Describe for the job of that name.
func describe(name string) func(way []yamlfile.Step) string {
	return func(way []yamlfile.Step) string {
		place, option := "job "+name, ""
		for _, s := range way {
			switch {
			case s.Key != "":
				option = below(option, s.Key, name)
			case elementAt(s.In.Items[s.Index]) != "":
				place, option = "job "+name+": "+elementAt(s.In.Items[s.Index]), ""
			default:
				option += fmt.Sprintf("[%d]", s.Index+1)
			}
		}
		if option == "" {
			return place
		}
		return place + ": " + option
	}
}

// below adds a key to a dotted path, without keys that only lead to elements and without the names of
// components that are Go code of the job.
func below(option, key, job string) string {
	switch {
	case option == "" && (key == "flow" || key == "finally" || isElementKind(key)), strings.HasPrefix(key, job+"."):
		return option
	case option == "":
		return key
	}
	return option + "." + key
}

func isElementKind(key string) bool {
	for _, kind := range elementKinds() {
		if key == string(kind) {
			return true
		}
	}
	return false
}

func elementAt(n *yamlfile.Node) string {
	for _, e := range n.Entries {
		if isElementKind(e.Key.Text) && e.Value.Kind == yamlfile.Scalar {
			return e.Key.Text + " " + e.Value.Text
		}
	}
	return ""
}

// texted is a file system of texts by name.
type texted map[string]string

// Open implements fs.FS.
func (t texted) Open(name string) (fs.File, error) {
	text, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &textFile{strings.NewReader(text), name}, nil
}

type textFile struct {
	*strings.Reader
	name string
}

// Stat implements fs.File.
func (f *textFile) Stat() (fs.FileInfo, error) { return textInfo{f.name, f.Size()}, nil }

// Close implements fs.File.
func (f *textFile) Close() error { return nil }

type textInfo struct {
	name string
	size int64
}

func (i textInfo) Name() string       { return i.name }
func (i textInfo) Size() int64        { return i.size }
func (i textInfo) Mode() fs.FileMode  { return 0o444 }
func (i textInfo) ModTime() time.Time { return time.Time{} }
func (i textInfo) IsDir() bool        { return false }
func (i textInfo) Sys() any           { return nil }
