package operator

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// onDisk reads the files of a stored definition as they are now. It returns the change, and the
// path of the changed file: a missing one, else a modified one.
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
	return core.NewDefinition(text, was.Path, files), change, path
}

// compareActions returns one action per file that shows the differences between two definitions of
// a job. path is the current location of the job file.
func compareActions(id core.JobExecutionID, was, now core.Definition, path string) []Action {
	if len(was.Files) == 0 {
		return []Action{{Kind: ActCompare, Execution: id, File: path}}
	}
	var actions []Action
	if was.Text != now.Text {
		actions = append(actions, Action{Kind: ActCompare, Execution: id, File: path, Name: mainName(was)})
	}
	for _, f := range was.Files {
		if other, found := now.File(f.Name); !found || other.Text != f.Text {
			actions = append(actions, Action{Kind: ActCompare, Execution: id, File: cmp.Or(other.Path, f.Path, f.Name), Name: f.Name})
		}
	}
	return actions
}

// mainName is the name of the job file itself among the files of a definition.
func mainName(d core.Definition) string {
	if d.Path == "" {
		return "job"
	}
	return filepath.Base(d.Path)
}

func definitionFiles(d core.Definition) []core.DefinitionFile {
	return append([]core.DefinitionFile{{Name: mainName(d), Text: d.Text, Path: d.Path}}, d.Files...)
}
