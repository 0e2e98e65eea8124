package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// ProgramError reports that a path of a client names a file that defines jobs. Such files lie in the folder
// of the job file, where clients may name others: a file written by a client would be run with the rights of
// the server.
type ProgramError struct{ Path string }

// Error names the path and the cure.
func (e *ProgramError) Error() string {
	return "the path " + e.Path + " was given by a client of the API and is that of a job file, a script or a program (" +
		strings.Join(programs(), ", ") + ", or executable), which clients may neither write nor remove; to write such a file, name it in the job file"
}

// Is says that nothing was done with it.
func (e *ProgramError) Is(target error) bool { return target == fs.ErrPermission } //nolint:errorlint // as errors.Is asks

// programs are the endings of files that define jobs.
func programs() []string { return []string{".yaml", ".yml", ".sql", ".sh"} }

// CheckOutput is Check for a file that is written.
func (f *Files) CheckOutput(path string) error {
	if err := f.Check(path); err != nil || f == nil || path == "" {
		return err
	}
	return f.written(path)
}

// written refuses to write, rename or remove a program, except by a path of the job file itself.
func (f *Files) written(paths ...string) error {
	if f == nil {
		return nil
	}
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		real, err := Real(abs)
		if err != nil {
			real = abs
		}
		if !f.isFree(abs, real) && (isProgram(abs) || isProgram(real)) {
			return exception.Fatal("", &ProgramError{path})
		}
	}
	return nil
}

func isProgram(path string) bool {
	if slices.Contains(programs(), strings.ToLower(filepath.Ext(path))) {
		return true
	}
	const anyMayExecute = 0o111
	info, err := os.Stat(path)
	return path != core.StdPath && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&anyMayExecute != 0
}
