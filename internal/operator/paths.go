package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// typed returns parameters with relative paths resolved against folder; an empty folder changes
// nothing. A text that the declaration lists is not a path typed by a user.
func typed(specs []core.ParameterSpec, given map[string]string, folder string) map[string]string {
	if folder == "" {
		return given
	}
	given = maps.Clone(given)
	for _, spec := range specs {
		text := given[spec.Name]
		if spec.Type == core.TypePath && text != "" && text != core.StdPath && !filepath.IsAbs(text) && !slices.Contains(spec.Enum, text) {
			given[spec.Name] = filepath.Join(folder, filepath.FromSlash(text))
		}
	}
	return given
}

func pathNames(specs []core.ParameterSpec, given map[string]string) []string {
	var names []string
	for _, spec := range specs {
		if _, is := given[spec.Name]; is && spec.Type == core.TypePath {
			names = append(names, spec.Name)
		}
	}
	return names
}

// placed returns parameters with the stored texts of declared paths (rule L1a).
func placed(specs []core.ParameterSpec, params core.Parameters) (core.Parameters, error) {
	list := params.All()
	for i, p := range list {
		at := slices.IndexFunc(specs, func(spec core.ParameterSpec) bool { return spec.Name == p.Name })
		if at < 0 || p.Type != core.TypePath {
			continue
		}
		own, err := specs[at].Place(p.Value)
		if err != nil {
			return params, err
		}
		list[i].Value, list[i].Path = own.Value, own.Path
	}
	return core.NewParameters(list...)
}

// asStored returns params with the paths of the execution as they are stored: that text identifies
// the instance, wherever the job file is now.
func asStored(params core.Parameters, e *core.JobExecution, changed map[string]string) (core.Parameters, error) {
	list := params.All()
	for i, p := range list {
		had, ok := e.Params.Get(p.Name)
		if _, anew := changed[p.Name]; ok && !anew && p.Type == core.TypePath && had.Type == core.TypePath {
			list[i].Value = had.Value
		}
	}
	return core.NewParameters(list...)
}

// noticeOtherFile reports that the job of this name was run from another file: by the last
// execution of the instance (nil if the instance is new), else by the newest of the job.
func (s *Service) noticeOtherFile(ctx context.Context, l *launch, last *core.JobExecution) error {
	now := l.job.Definition.Path
	if now == "" {
		return nil
	}
	if last == nil {
		page, err := s.config.Repository.Executions(ctx, ports.ExecutionFilter{JobName: l.job.Name, Limit: 1})
		if err != nil {
			return fmt.Errorf("find the newest execution: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		last = &page[0]
	}
	was := last.Definition.Path
	if was == "" || was == now || isSameFile(was, now) && isSameFile(filepath.Dir(was), filepath.Dir(now)) {
		return nil // else relative paths begin at another folder
	}
	_, err := os.Stat(was)
	l.hooks.notice(Notice{Kind: NoticeOtherFile, Execution: last.ID, File: now, Was: was, WasGone: errors.Is(err, fs.ErrNotExist)})
	return nil
}

// isSameFile reports whether two paths lead to one file, following links.
func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
