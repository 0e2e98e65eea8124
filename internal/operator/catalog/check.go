package catalog

import (
	"os"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
)

// Checked is a job of a catalog, and whether its file is right.
type Checked struct {
	JobName string
	Path    string
	// Err is why it cannot be run; nil if it can.
	Err error
}

// A file that has not changed is read again after recheck, since it may depend on more than the files that
// it names; one call reads the oldest of these, so that none takes long.
const recheck = 30 * time.Second

// checks keeps the results of a catalog, since reading a file takes a millisecond.
type checks struct {
	mu   sync.Mutex
	jobs map[string]check
}

type check struct {
	err   error
	at    time.Time
	files map[string]state // that the file names, and itself
}

type state struct {
	size     int64
	modified time.Time
}

// Check reads those job files that have changed since the last call, and returns the jobs in this order.
func (c *Catalog) Check(names []string) []Checked {
	c.checks.mu.Lock()
	defer c.checks.mu.Unlock()
	list, oldest := make([]Checked, 0, len(names)), c.checks.oldest(names)
	for _, name := range names {
		if file := c.carried[name]; file != nil {
			list = append(list, Checked{JobName: name, Path: file.Path()})
			continue
		}
		from, is := c.jobs[name]
		if !is {
			continue
		}
		known := c.checks.jobs[name]
		if name == oldest && time.Since(known.at) > recheck || known.hasChanged() {
			before := stateOf(from.String())
			file, err := c.File(name)
			known = checkOf(from.String(), before, file, err)
			c.checks.jobs[name] = known
		}
		list = append(list, Checked{name, from.String(), known.err})
	}
	return list
}

func (c *checks) oldest(names []string) (oldest string) {
	for _, name := range names {
		known, is := c.jobs[name]
		if is && (oldest == "" || known.at.Before(c.jobs[oldest].at)) {
			oldest = name
		}
	}
	return oldest
}

// checkOf is the result of loading a file, which had this state before.
func checkOf(path string, before state, file *jobfile.File, err error) check {
	now := check{err: err, at: time.Now(), files: map[string]state{path: before}}
	if err == nil {
		for _, f := range file.Definition().Files {
			if f.Path != path {
				now.files[f.Path] = stateOf(f.Path)
			}
		}
	}
	return now
}

func (c check) hasChanged() bool {
	for path, was := range c.files {
		if stateOf(path) != was {
			return true
		}
	}
	return c.files == nil
}

func stateOf(path string) state {
	info, err := os.Stat(path)
	if err != nil {
		return state{}
	}
	return state{info.Size(), info.ModTime()}
}
