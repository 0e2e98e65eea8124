// Package logfolder keeps log text of tasks as files in a folder.
//
// It imports core/task.
package logfolder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
)

// Folder is a taskports.LogStore.
type Folder struct{ path string }

var _ taskports.LogStore = Folder{}

// New returns the store; Put makes a missing folder.
func New(path string) Folder { return Folder{path} }

// ErrOtherText reports another text under the log's name: another repository moves its logs there.
var ErrOtherText = errors.New("the folder has another text under this name: use a separate folder for each repository (tasks.logs)")

// Put implements taskports.LogStore. The file has its whole text or does not exist; an existing one
// is never replaced.
func (f Folder) Put(_ context.Context, name, text string) (string, error) {
	if name != filepath.Base(name) {
		return "", fmt.Errorf("log %q: it must be a file name", name)
	}
	if err := os.MkdirAll(f.path, 0o750); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(f.path, name+".part-*")
	if err != nil {
		return "", err
	}
	_, err = temp.WriteString(text)
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), filepath.Join(f.path, name)) // unlike a rename it replaces nothing
	}
	if errors.Is(err, fs.ErrExist) {
		err = f.isSame(name, text)
	}
	if err := errors.Join(err, os.Remove(temp.Name())); err != nil {
		return "", fmt.Errorf("log %s: %w", filepath.Join(f.path, name), err)
	}
	return name, f.sync()
}

func (f Folder) isSame(name, text string) error {
	found, err := os.ReadFile(filepath.Join(f.path, name)) //nolint:gosec // a name in the folder
	if err == nil && string(found) != text {
		err = ErrOtherText
	}
	return err
}

func (f Folder) sync() error {
	folder, err := os.Open(f.path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Get implements taskports.LogStore.
func (f Folder) Get(_ context.Context, ref string) (string, error) {
	if ref != filepath.Base(ref) {
		return "", fmt.Errorf("log %q: it must be a file name", ref)
	}
	text, err := os.ReadFile(filepath.Join(f.path, ref)) //nolint:gosec // a name in the folder
	return string(text), err
}
