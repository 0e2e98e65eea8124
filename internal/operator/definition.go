package operator

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// onDisk returns the change, and the path of the changed file: a missing one,
// else a modified one.
func onDisk(was core.Definition) (now core.Definition, change FileChange, path string) {
	note := func(c FileChange, p string) {
		if change == "" || change == FileChanged && c == FileGone {
			change, path = c, p
		}
	}
	read := func(p, text string) string {
		found, err := smallfile.Read(p)
		switch {
		case err != nil && !errors.Is(err, smallfile.ErrTooLarge):
			note(FileGone, p)
		case string(found) != text:
			note(FileChanged, p)
		}
		return string(found)
	}
	text := was.Text
	if was.Path != "" { // else there was no file, and it cannot change
		text = read(was.Path, was.Text)
	}
	var files []core.DefinitionFile
	for _, f := range was.Files {
		if f.Path != "" { // else it changes with the program only
			f.Text = read(f.Path, f.Text)
		}
		files = append(files, f)
	}
	return ports.NewDefinition(text, was.Path, files), change, path
}

func definitionFiles(d core.Definition) []core.DefinitionFile {
	return append([]core.DefinitionFile{{Name: mainName(d), Text: d.Text, Path: d.Path}}, d.Files...)
}

// FileChange is how a job file has changed since an execution began.
type FileChange string

// The changes of a job file; empty if it is the same.
const (
	FileGone    FileChange = "gone"
	FileChanged FileChange = "changed"
)
