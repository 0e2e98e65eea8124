package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tree is the text of a checkout: its Go files, parsed, and its Markdown.
type tree struct {
	root     string
	files    []*source
	markdown []*source
}

type source struct {
	path string // relative to the root, with slashes
	dir  string
	text string
	test bool
	fset *token.FileSet
	ast  *ast.File // nil of Markdown
}

func readTree(root string) (*tree, error) {
	t := &tree{root: root}
	return t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		return t.add(path)
	})
}

func (t *tree) add(path string) error {
	isGo, isMarkdown := strings.HasSuffix(path, ".go"), strings.HasSuffix(path, ".md")
	if !isGo && !isMarkdown {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(t.root, path)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	s := &source{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), text: string(text), test: strings.HasSuffix(rel, "_test.go")}
	if isMarkdown {
		t.markdown = append(t.markdown, s)
		return nil
	}
	s.fset = token.NewFileSet()
	s.ast, err = parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	t.files = append(t.files, s)
	return err
}

// product are the files that users run: no tests, test kits, benchmarks, examples or generators.
func (t *tree) product() []*source {
	var files []*source
	for _, f := range t.files {
		if !f.test && kindOf(f.dir) == "product" {
			files = append(files, f)
		}
	}
	return files
}

// kindOf tells the folders of the product from those of test kits and from others.
func kindOf(dir string) string {
	last := dir[strings.LastIndex(dir, "/")+1:]
	switch first, rest, _ := strings.Cut(dir, "/"); {
	case first == "example", first == "tools", rest == "docgen":
		return "other"
	case first == "bench", first == "browser", strings.HasPrefix(rest, "test") && first == "internal":
		return "kit"
	case last == "itemtest", last == "txtest", last == "enginetest", last == "repositorytest", last == "batchtest":
		return "kit"
	}
	return "product"
}

// names calls f with each name that a file declares at the top level.
func (s *source) names(f func(name string)) {
	for _, decl := range s.ast.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				f(decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					f(spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						f(n.Name)
					}
				}
			}
		}
	}
}
