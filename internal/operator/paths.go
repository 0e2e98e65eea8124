package operator

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func typed(specs []core.ParameterSpec, given map[string]string, folder string) map[string]string {
	if folder == "" {
		return given
	}
	given = maps.Clone(given)
	for _, spec := range specs {
		text := given[spec.Name]
		if spec.Type != core.TypePath || text == "" || text == core.StdPath || filepath.IsAbs(text) || urlpath.Is(text) || slices.Contains(spec.Enum, text) {
			continue
		}
		given[spec.Name] = filepath.Join(folder, filepath.FromSlash(text))
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

// storedPaths: rule L1a.
func storedPaths(specs []core.ParameterSpec, params core.Parameters) (core.Parameters, error) {
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

// The stored text identifies the instance, wherever the job file is now.
func asStored(params core.Parameters, e *core.JobExecution, changed map[string]string) (core.Parameters, error) {
	list := params.All()
	for i, p := range list {
		had, ok := e.Params.Get(p.Name)
		if _, given := changed[p.Name]; ok && !given && p.Type == core.TypePath && had.Type == core.TypePath {
			list[i].Value = had.Value
		}
	}
	return core.NewParameters(list...)
}
