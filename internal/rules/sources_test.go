package rules_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

type source struct {
	dir, name string // dir is slash-separated, below the module
	imports   []string
}

// readSources reads the imports of every Go file of the module in dir, whatever its build constraints.
func readSources(dir string) ([]source, error) {
	var out []source
	err := walkModule(dir, func(file string, _ fs.DirEntry) error {
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{dir: path.Dir(file), name: path.Base(file)}
		for _, i := range parsed.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		out = append(out, s)
		return nil
	})
	return out, err
}
