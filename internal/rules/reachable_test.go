package rules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch"
)

// Methods that neither the shipped command nor its server and console call would rot, and
// their tests with them. deadcode does not find them, since fx makes the App.
func TestTheCommandReachesWhatAnAppCan(t *testing.T) {
	t.Parallel()
	called := map[string]bool{}
	for _, folder := range []string{"../../pkg/batch", "../cli", "../api", "../console", "../operator"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, folder)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				noteCalls(t, file, called)
			}
		}
	}
	var unreachable []string
	app := reflect.TypeFor[*batch.App]()
	require.Greater(t, app.NumMethod(), 15)
	for i := range app.NumMethod() {
		if name := app.Method(i).Name; !called[name] {
			unreachable = append(unreachable, name)
		}
	}
	require.Empty(t, unreachable)
}

func TestTheDocumentationOfAnAppNamesMethodsThatItHas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../pkg/batch/app.go")
	require.NoError(t, err)
	_, doc, _ := strings.Cut(string(text), "// App runs jobs inside a Go program.")
	doc, _, _ = strings.Cut(doc, "\ntype App struct")
	app := reflect.TypeFor[*batch.App]()
	named := regexp.MustCompile(`(?m)^//\t(\w+)\(`).FindAllStringSubmatch(doc, -1)
	_, others, _ := strings.Cut(doc, "// and ")
	others, _, _ = strings.Cut(others, " and others")
	for _, name := range strings.Split(others, ", ") {
		named = append(named, []string{"", name})
	}
	require.Greater(t, len(named), 15)
	for _, name := range named {
		_, found := app.MethodByName(name[1])
		require.True(t, found, name[1])
	}
}

func noteCalls(t *testing.T, file string, called map[string]bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch of := s.X.(type) {
		case *ast.Ident:
			called[s.Sel.Name] = called[s.Sel.Name] || of.Name == "s"
		case *ast.SelectorExpr:
			called[s.Sel.Name] = called[s.Sel.Name] || of.Sel.Name == "Service"
		}
		return true
	})
}
