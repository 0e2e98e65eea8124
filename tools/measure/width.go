package main

import (
	"go/ast"
	"strings"
)

const module = "github.com/surfin-batch/surfin/"

// interfaces counts the methods of each interface of the product, those of embedded ones
// included. Embedded interfaces of other modules count as one method.
func interfaces(t *tree) []measure {
	all := map[string]declared{} // dir.Name
	for _, f := range t.product() {
		for _, decl := range f.ast.Decls {
			types, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range types.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					if i, ok := spec.Type.(*ast.InterfaceType); ok {
						all[f.dir+"."+spec.Name.Name] = declared{f, i}
					}
				}
			}
		}
	}
	widths := map[string]float64{}
	for name := range all {
		names := map[string]bool{}
		collect(all, name, names)
		widths[name] = float64(len(names))
	}
	return byName("interface", widths)
}

type declared struct {
	file *source
	of   *ast.InterfaceType
}

// collect adds the methods of the named interface to names.
func collect(all map[string]declared, name string, names map[string]bool) {
	d, ok := all[name]
	if !ok {
		names[name] = true // embedded, of another module
		return
	}
	for _, m := range d.of.Methods.List {
		for _, n := range m.Names {
			names[n.Name] = true
		}
		if len(m.Names) > 0 {
			continue
		}
		switch e := m.Type.(type) {
		case *ast.Ident:
			collect(all, d.file.dir+"."+e.Name, names)
		case *ast.SelectorExpr:
			if x, ok := e.X.(*ast.Ident); ok {
				collect(all, imported(d.file, x.Name)+"."+e.Sel.Name, names)
			}
		}
	}
}

// imported returns the folder of the package that the file calls name, or its path if it is of
// another module.
func imported(f *source, name string) string {
	for _, i := range f.ast.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		as := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			as = i.Name.Name
		}
		if as == name {
			return strings.TrimPrefix(path, module)
		}
	}
	return name
}
