package confine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// ProgramError says that a client may not write or remove a file that may define what jobs
// do.
type ProgramError struct {
	Path string
	Why  string
}

// Error names the path, the reason and the fix.
func (e *ProgramError) Error() string {
	return "the path " + e.Path + " was given by a client of the API and " + e.Why
}

// Is says that nothing was done with it.
func (e *ProgramError) Is(target error) bool { return target == fs.ErrPermission } //nolint:errorlint // as errors.Is asks

func programs() []string { return []string{".yaml", ".yml", ".sql", ".sh"} }

// data are the endings that a client may write next to a job file.
func data() []string {
	return []string{".csv", ".tsv", ".txt", ".dat", ".json", ".jsonl", ".ndjson", ".xml", ".log", ".html", ".md", ".parquet", ".xlsx", ".zip"}
}

func compressed() []string { return []string{".gz", ".bz2", ".zst", ".xz"} }

func sums() []string { return []string{".sha256", ".sha512", ".sha1", ".md5"} }

func lists() []string { return []string{"sha256sums", "sha512sums", "sha1sums", "md5sums"} }

var made = regexp.MustCompile(`^(?:(.+)\.part\.[0-9a-f]{12}-\d+-[a-z2-7]{8}|\.(.+)\.surfin-\d+-[A-Z2-7]{8})$`)

func whole(path string) string {
	dir, base := filepath.Split(path)
	if found := made.FindStringSubmatch(base); found != nil {
		return dir + found[1] + found[2]
	}
	return path
}

func isData(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	if slices.Contains(lists(), name) {
		return true
	}
	for _, endings := range [][]string{sums(), compressed()} {
		if ending := filepath.Ext(name); slices.Contains(endings, ending) {
			name = strings.TrimSuffix(name, ending)
		}
	}
	return slices.Contains(data(), filepath.Ext(name))
}

func isProgram(path string) bool {
	return slices.Contains(programs(), strings.ToLower(filepath.Ext(strings.TrimRight(path, ". "))))
}

// Give notes a path or a pattern that has a value of the client: Free does not admit writing to it.
func (f *Files) Give(path string) {
	abs, err := urlpath.Abs(path)
	if f == nil || path == "" || err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.given = append(f.given, abs)
}

func (f *Files) mayWrite(abs, real string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.given, func(given string) bool { return fits(given, abs) || isBelow(abs, given) }) {
		return false
	}
	for free, of := range f.free {
		if of.written && (fits(free, abs) || len(f.given) == 0 && isBelow(real, of.real)) {
			return true
		}
	}
	return false
}

func fits(pattern, path string) bool {
	matches, err := filepath.Match(pattern, path)
	return pattern == path || err == nil && matches
}

// CheckOutput is Check for a file that is written.
func (f *Files) CheckOutput(path string) error {
	if err := f.Check(path); err != nil || f == nil || path == "" {
		return err
	}
	return f.written(path)
}

func (f *Files) written(paths ...string) error {
	if f == nil {
		return nil
	}
	for _, path := range paths {
		if urlpath.Is(path) {
			if err := f.URL(path); err != nil {
				return err
			}
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if _, _, err := f.place(abs); err != nil {
			return err
		}
		real, err := Real(abs)
		if err != nil {
			real = abs
		}
		if f.mayWrite(whole(abs), whole(real)) {
			continue
		}
		why, err := f.refusal(abs, real)
		if err != nil {
			return err
		}
		if why != "" {
			return exception.Fatal("", &ProgramError{Path: path, Why: why})
		}
	}
	return nil
}

func (f *Files) refusal(abs, real string) (why string, err error) {
	const never = ", which clients must not write or remove"
	own, target := whole(abs), whole(real)
	switch {
	case isProgram(own) || isProgram(target):
		return "belongs to a job file or a script (" + strings.Join(programs(), ", ") + ")" + never +
			", in folders of api.paths either; to write such a file, name it in the job file", nil
	case f.besideJobs(real) && !(isData(own) && isData(target)):
		return "is in the folder of a job file but does not belong to a data file (" + strings.Join(data(), ", ") + ", also with " + strings.Join(compressed(), ", ") +
			" or a checksum's " + strings.Join(sums(), ", ") + "): it could be a script that the server runs" + never +
			"; use a data file, or add a folder for data, other than the job file's, to api.paths", nil
	case own != abs: // half-written by this program
		return "", nil
	}
	code, err := f.hasCode(abs)
	if code {
		return "belongs to a program (it starts with #! or is in the format ELF)" + never + "; if it is data, remove it on the server, or name it in the job file", nil
	}
	return "", err
}

func (f *Files) besideJobs(real string) bool {
	nearest := ""
	for _, root := range f.roots {
		if (real == root || isBelow(real, root)) && len(root) > len(nearest) {
			nearest = root
		}
	}
	return nearest != "" && !slices.Contains(f.confinement.Data, nearest)
}

// hasCode reads the file: the executable bit is set on all files where the file system has none.
func (f *Files) hasCode(path string) (bool, error) {
	info, err := f.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // there is no file, or what is wrong with it is said when it is used
	}
	file, err := f.Open(path)
	if err != nil {
		return false, fmt.Errorf("check whether it is a program: %w", err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	begin := make([]byte, len("\x7fELF"))
	n, err := io.ReadFull(file, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("check whether it is a program: %w", err)
	}
	return bytes.HasPrefix(begin[:n], []byte("#!")) || string(begin[:n]) == "\x7fELF", nil
}
