package batch

import (
	"io/fs"

	"github.com/surfin-batch/surfin/internal/jobfile"
)

// Source locates a job file: [File], [FS] and [Bytes] make one.
type Source = jobfile.Source

// File is a job file on disk; relative paths are relative to its folder.
func File(path string) Source { return jobfile.Path(path) }

// FS is a job file in a file system, with its child jobs' files. Relative paths of data are relative to the
// working directory.
func FS(fsys fs.FS, path string) Source { return jobfile.FS(fsys, path) }

// Bytes is a job file's text; name is for messages. Relative paths are relative to the working directory.
func Bytes(name string, text []byte) Source { return jobfile.Bytes(name, text) }
