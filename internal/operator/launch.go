package operator

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type launch struct {
	definition
	job     *model.Job
	params  core.Parameters
	options job.Options
	hooks   Hooks
	// nil: resume incomplete work.
	from    *journal.From
	follows *core.JobExecution
	named   *core.JobExecution
	// last is set once the launcher has read it.
	last    *core.JobExecution
	noticed bool
	writers []DryEnd // of a redrive
}

func (l *launch) checkPaths(ctx context.Context) (context.Context, error) {
	ctx = confine.With(ctx, confine.New(l.job.Confinement))
	if err := job.CheckPaths(ctx, l.job, l.params); err != nil {
		return ctx, l.parametersRefused(err)
	}
	return ctx, nil
}

func (l *launch) bind(ctx context.Context) error {
	if l.job.Bind == nil {
		return nil
	}
	return l.job.Bind(confine.With(ctx, confine.New(l.job.Confinement)), l.params)
}

func (l *launch) parametersRefused(err error) error {
	return &Refusal{Reason: refusal.Parameters, Err: err, Actions: []Action{{Kind: refusal.ActHelp, Job: l.job.Name, File: l.path}}}
}

func (l *launch) noticeChanges(last *core.JobExecution, changes []jobfile.Change) {
	if l.noticed || last.Definition.Hash == l.job.Definition.Hash {
		return
	}
	l.noticed = true
	l.hooks.notice(Notice{Kind: NoticeChanged, Execution: last.ID, File: l.path, FromStart: l.options.FromStart, Changes: changes,
		Actions: compareActions(last.ID, last.Definition, l.job.Definition, l.path)})
}

// confine restricts the paths that contain a client's value, given now or
// earlier.
func (l *launch) confine(ctx context.Context, given map[string]string, from *core.JobExecution) {
	paths, isClient := clientPaths(ctx)
	c := core.Confinement{}
	if from != nil && from.Confinement != nil {
		c.Roots, c.Data = from.Confinement.Roots, from.Confinement.Data
		for _, name := range from.Confinement.Given {
			if _, given := given[name]; !given {
				c.Given = append(c.Given, name)
			}
		}
	}
	if isClient {
		c.Given = append(c.Given, slices.Collect(maps.Keys(given))...)
		own, data := confine.Roots(l.folder()), confine.Roots(paths...)
		c.Roots = append(slices.Clone(own), data...)
		c.Data = slices.DeleteFunc(data, func(root string) bool { return slices.Contains(own, root) })
	}
	if len(c.Given) == 0 {
		return
	}
	slices.Sort(c.Given)
	l.job.Confinement = &c
}

func (l *launch) folder() string {
	if path := l.job.Definition.Path; path != "" {
		return filepath.Dir(path)
	}
	return ""
}

type clientKey struct{}

// WithClient marks requests as an API client's: paths with a client's value
// must lie below the job file's folder or one of paths (rule SE3).
func WithClient(ctx context.Context, paths []string) context.Context {
	return context.WithValue(ctx, clientKey{}, slices.Clip(paths))
}

func clientPaths(ctx context.Context) ([]string, bool) {
	paths, is := ctx.Value(clientKey{}).([]string)
	return paths, is
}
