// Package waitfile is the tasklet `wait_file`.
//
// It imports core and core/registry.
package waitfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config configures the tasklet.
type config struct {
	Path    string        `key:"path" main:"true" path:"true" required:"true" doc:"The file, or a pattern with *, ? and [a-z]."`
	Count   int           `key:"count" default:"1" doc:"The least number of files."`
	Stable  time.Duration `key:"stable" default:"5s" doc:"How long their names, sizes and times must stay the same; 0s accepts them at once, for files that appear by a rename."`
	Poll    time.Duration `key:"poll" default:"1s" doc:"The time between two checks."`
	Timeout time.Duration `key:"timeout" default:"1h" doc:"How long an attempt waits; 0s waits forever."`
	Missing string        `key:"missing" default:"error" enum:"error,ignore" doc:"What happens after the timeout: error fails the step; ignore completes it, with out.found = false."`
}

const defaultPoll = time.Second

// Validate checks pattern and durations.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	switch _, err := filepath.Match(c.Path, ""); {
	case c.Path == "":
		bad("path", "the file is missing")
	case err != nil:
		bad("path", "%q is not a pattern: a [ needs its ] (a literal [ is written \\[)", c.Path)
	case strings.Contains(c.Path, "**"):
		bad("path", "%q: ** is not supported; name the folders, such as */*.csv", c.Path)
	}
	if c.Count < 0 {
		bad("count", "%d is less than 0", c.Count)
	}
	for key, d := range map[string]time.Duration{"stable": c.Stable, "poll": c.Poll, "timeout": c.Timeout} {
		if d < 0 {
			bad(key, "%s is less than 0", d)
		}
	}
	if c.Timeout > 0 && c.Stable >= c.Timeout {
		bad("stable", "%s must be less than the timeout of %s", c.Stable, c.Timeout)
	}
	if !slices.Contains([]string{"", "error", "ignore"}, c.Missing) {
		bad("missing", "%q is unknown (allowed: error, ignore)", c.Missing)
	}
	return errors.Join(errs...)
}

func results() []row.Field {
	return []row.Field{
		{Name: "found", Kind: row.Bool}, {Name: "files", Kind: row.Int}, {Name: "bytes", Kind: row.Int}, {Name: "path", Kind: row.String, Nullable: true},
	}
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "wait_file", Config: reflect.TypeFor[config](), NoTransaction: true, Results: results(),
		Summary: "waits until a file exists and is complete",
		Doc: `It polls the folder, which works on every kind of disk. Only regular files count,
also through a symbolic link; folders do not. In an object store (s3://) the objects of a bucket are polled. The results are ` + "`found`, `files` and `bytes`" + `, and of one file its ` + "`path`" + `.

Meanwhile the step holds no transaction, and the lease of the execution is renewed as usual. A stop ends the
wait at once. Each attempt waits again, for its whole ` + "`timeout`" + ` (rule TL5). That is an error of the class timeout.
A program that writes a file can make it appear complete, by a rename: then ` + "`stable: 0s`" + ` is enough.`,
		Example: `job: arrive
parameters: {year: {type: int}}
flow:
- step: arrive
  tasklet:
    wait_file: {path: "in/strikes_${params.year}*.csv", stable: 30s, timeout: 4h}`,
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return newTasklet(*cfg.(*config))
		},
	}}
}

type tasklet struct{ config config }

// newTasklet checks config.
func newTasklet(cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Count, cfg.Poll = max(cfg.Count, 1), cmp.Or(cfg.Poll, defaultPoll)
	return &tasklet{config: cfg}, nil
}

type seen struct {
	size int64
	time int64
	mark string // in another place than the disk
}

// Execute waits.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	began := time.Now()
	var files map[string]seen
	since := began
	for {
		found, err := t.findFiles(ctx)
		if err != nil {
			return fmt.Errorf("wait_file: %w", err)
		}
		now := time.Now()
		if files == nil || !maps.Equal(files, found) {
			files, since = found, now
		}
		if len(files) >= t.config.Count && now.Sub(since) >= t.config.Stable {
			t.report(c, files, true)
			return nil
		}
		wait := t.config.Poll
		if t.config.Timeout > 0 {
			left := t.config.Timeout - now.Sub(began)
			if left <= 0 {
				t.report(c, files, false)
				return t.late(files)
			}
			wait = min(wait, left)
		}
		if err := c.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("wait_file: %w", err)
		}
	}
}

func (t *tasklet) findFiles(ctx context.Context) (map[string]seen, error) {
	if urlpath.Is(t.config.Path) {
		return t.findIn(ctx)
	}
	names := []string{t.config.Path}
	disk := confine.From(ctx)
	if _, err := disk.Lstat(t.config.Path); err != nil { // else the pattern is a name
		if names, err = filepath.Glob(t.config.Path); err != nil {
			return nil, err
		}
	}
	files := make(map[string]seen, len(names))
	for _, name := range names {
		info, err := disk.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			files[name] = seen{size: info.Size(), time: info.ModTime().UnixNano()}
		}
	}
	return files, nil
}

// findIn looks into another place than the disk, where all files are complete.
func (t *tasklet) findIn(ctx context.Context) (map[string]seen, error) {
	info, err := place.Stat(ctx, t.config.Path)
	list := []place.Info{info}
	if errors.Is(err, fs.ErrNotExist) {
		list, err = place.Find(ctx, t.config.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.config.Path, err)
	}
	files := make(map[string]seen, len(list))
	for _, found := range list {
		files[found.Path] = seen{size: found.Size, mark: found.Mark()}
	}
	return files, nil
}

func (t *tasklet) report(c *core.StepContribution, files map[string]seen, found bool) {
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	var bytes int64
	c.Out["path"] = nil
	for name, f := range files {
		bytes += f.size
		if len(files) == 1 {
			c.Out["path"] = name
		}
	}
	c.Out["found"], c.Out["files"], c.Out["bytes"] = found, int64(len(files)), bytes
}

func (t *tasklet) late(files map[string]seen) error {
	if t.config.Missing == "ignore" {
		return nil
	}
	what := fmt.Sprintf("there is no file %s", t.config.Path)
	switch {
	case len(files) >= t.config.Count:
		what = fmt.Sprintf("%s is still being written: it was never unchanged for %s", t.config.Path, t.config.Stable)
	case len(files) > 0:
		what = fmt.Sprintf("found %d of the %d files %s", len(files), t.config.Count, t.config.Path)
	}
	return &exception.BatchError{
		Op: "wait_file", Class: "timeout", Retryable: true,
		Err: fmt.Errorf("%s after %s: a restart waits again", what, t.config.Timeout),
	}
}
