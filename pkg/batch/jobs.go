package batch

import (
	"errors"
	"fmt"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const (
	groupJobs     = `group:"surfin.jobs,flatten"`
	groupJobFiles = `group:"surfin.jobfiles,flatten"`
)

// JobFiles registers job files by their jobs' names (RunRequest.Name), so a restart in another process finds
// them: for files in the program, such as an embed.FS. A wrong file is an error of New.
func JobFiles(sources ...Source) fx.Option {
	return fx.Provide(fx.Annotate(func() []Source { return sources }, fx.ResultTags(groupJobFiles)))
}

type carried struct {
	fx.In
	Jobs  []*Job   `group:"surfin.jobs"`
	Files []Source `group:"surfin.jobfiles"`
}

func (c carried) load(r *registry.Registry) (map[string]*jobfile.File, error) {
	files := map[string]*jobfile.File{}
	var errs []error
	add := func(file *jobfile.File, err error) {
		switch {
		case err != nil:
			errs = append(errs, err)
		case files[file.Name()] != nil:
			errs = append(errs, fmt.Errorf("there are two jobs named %s", file.Name()))
		default:
			files[file.Name()] = file
		}
	}
	for _, j := range c.Jobs {
		add(j.Load(r))
	}
	for _, from := range c.Files {
		add(from.Load(r))
	}
	return files, errors.Join(errs...)
}
