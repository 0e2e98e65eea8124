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
// it names; one call reads few of these, so that none takes long.
const (
	recheck     = 30 * time.Second
	maxRechecks = 5
)

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

// Check reads the job files that have changed since the last call, and returns all jobs by name.
func (c *Catalog) Check() []Checked {
	c.checks.mu.Lock()
	defer c.checks.mu.Unlock()
	list, again := make([]Checked, 0, len(c.jobs)+len(c.carried)), 0
	for _, name := range c.Names() {
		if file := c.carried[name]; file != nil {
			list = append(list, Checked{JobName: name, Path: file.Path()})
			continue
		}
		known := c.checks.jobs[name]
		old := time.Since(known.at) > recheck && again < maxRechecks
		if old || known.hasChanged() {
			known = c.check(name)
			c.checks.jobs[name] = known
		}
		if old {
			again++
		}
		list = append(list, Checked{name, c.jobs[name].String(), known.err})
	}
	return list
}

func (c *Catalog) check(name string) check {
	path := c.jobs[name].String()
	now := check{at: time.Now(), files: map[string]state{path: stateOf(path)}}
	var file *jobfile.File
	if file, now.err = c.File(name); now.err == nil {
		for _, f := range file.Definition().Files {
			now.files[f.Path] = stateOf(f.Path)
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
