package main

import (
	"bufio"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
)

// lines counts lines of code, without comments and blank lines: of the product, of each of its
// rooms (folders), and of kits that are not test files.
func lines(t *tree) []measure {
	rooms := map[string]float64{}
	for _, f := range t.files {
		if f.test {
			continue
		}
		n := codeLines(f)
		switch kindOf(f.dir) {
		case "product":
			rooms["product"] += n
			rooms[f.dir] += n
		case "kit":
			rooms["kits"] += n
		}
	}
	return byName("lines", rooms)
}

func codeLines(f *source) float64 {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(f.path, -1, len(f.text))
	s.Init(file, []byte(f.text), nil, 0)
	code := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return float64(len(code))
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		for i := range strings.Count(literal, "\n") + 1 {
			code[file.Line(pos)+i] = true
		}
	}
}

// exported counts exported names at the top level of packages under pkg and contrib; contrib is not in the total.
func exported(t *tree) []measure {
	rooms := map[string]float64{}
	for _, f := range t.files {
		contrib := f.dir == "contrib" || strings.HasPrefix(f.dir, "contrib/")
		if f.test || !contrib && !strings.HasPrefix(f.dir, "pkg/") || strings.Contains(f.dir, "/internal/") {
			continue
		}
		f.names(func(name string) {
			if ast.IsExported(name) {
				rooms[f.dir]++
				if !contrib {
					rooms["total"]++
				}
			}
		})
	}
	return byName("exported", rooms)
}

// folders counts the folders under pkg that have Go files.
func folders(t *tree) []measure {
	dirs := map[string]bool{}
	for _, f := range t.files {
		if strings.HasPrefix(f.dir, "pkg/") && !f.test {
			dirs[f.dir] = true
		}
	}
	return []measure{{"folders", "pkg", float64(len(dirs))}}
}

// methods counts the methods of each type of the product.
func methods(t *tree) []measure {
	types := map[string]float64{}
	for _, f := range t.product() {
		for _, decl := range f.ast.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok && decl.Recv != nil {
				types[f.dir+"."+receiver(decl.Recv.List[0].Type)]++
			}
		}
	}
	return byName("methods", types)
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// directModules counts the modules that go.mod requires directly.
func directModules(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, inside := 0, false
	in := bufio.NewScanner(file)
	for in.Scan() {
		switch line := strings.TrimSpace(in.Text()); {
		case line == "require (":
			inside = true
		case line == ")":
			inside = false
		case (inside || strings.HasPrefix(line, "require ")) && line != "" && !strings.HasSuffix(line, "// indirect"):
			n++
		}
	}
	return n, in.Err()
}

// byName makes a measure of each entry, in the order of the names.
func byName(kind string, of map[string]float64) []measure {
	var measures []measure
	for _, name := range slices.Sorted(maps.Keys(of)) {
		measures = append(measures, measure{kind, name, of[name]})
	}
	return measures
}
