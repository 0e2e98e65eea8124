package batch

import (
	"io/fs"

	"github.com/surfin-batch/surfin/internal/jobfile"
)

// Source locates a job file: [File], [FS] and [Bytes] make one.
type Source = jobfile.Source

// File is a job file on the disk; relative paths in it are relative to its folder.
func File(path string) Source { return jobfile.Path(path) }

// FS is a job file in a file system, such as an embed.FS, which also holds the files of its child jobs.
// Relative paths of data in it are relative to the working directory.
func FS(fsys fs.FS, path string) Source { return jobfile.FS(fsys, path) }

// Bytes is the text of a job file; name is its name in messages. Relative paths in it are relative to
// the working directory.
func Bytes(name string, text []byte) Source { return jobfile.Bytes(name, text) }
