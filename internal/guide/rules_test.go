package guide

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	proofs = regexp.MustCompile("^`([^`]+)`: (.+)$")
	proof  = regexp.MustCompile("^(case )?`([^`]+)`$")
)

func TestEveryRuleOfTheSourcesNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	text, folders := page(t, "docs/sources.md"), map[string]names{}
	headings := regexp.MustCompile("(?m)^## Source 00.*$").FindAllString(text, -1)
	require.Len(t, headings, 5)
	for _, heading := range headings {
		checkProofs(t, folders, table(t, section(t, text, heading), "rule", "here", "tests"))
	}
}

// checkProofs checks the third column of a table of rules.
func checkProofs(t *testing.T, folders map[string]names, rows [][]string) {
	t.Helper()
	for _, cells := range rows {
		for _, there := range strings.Split(cells[2], "; ") {
			match := proofs.FindStringSubmatch(there)
			require.NotNil(t, match, "%s: %q is not `folder`: `Test`, case `name`", cells[0], there)
			folder := match[1]
			found, ok := folders[folder]
			if !ok {
				found = namesIn(t, folder)
				folders[folder] = found
			}
			for _, one := range splitProofs(match[2]) {
				named := proof.FindStringSubmatch(one)
				require.NotNil(t, named, "%s: %q is not `Test`, nor case `name`", cells[0], one)
				if named[1] != "" {
					require.True(t, found.cases[named[2]], "%s: there is no case %q in %s", cells[0], named[2], folder)
				} else {
					require.True(t, found.tests[named[2]], "%s: there is no test %s in %s", cells[0], named[2], folder)
				}
			}
		}
	}
}

// splitProofs splits at commas that follow a name: names of cases have commas of their own.
func splitProofs(list string) []string {
	parts := strings.Split(list, "`, ")
	for i := range parts[:len(parts)-1] {
		parts[i] += "`"
	}
	return parts
}

type names struct{ tests, cases map[string]bool }

func namesIn(t *testing.T, folder string) names {
	t.Helper()
	dir := filepath.Join(root(t), filepath.FromSlash(folder))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	n := names{tests: map[string]bool{}, cases: map[string]bool{}}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			switch x := node.(type) {
			case *ast.FuncDecl:
				if x.Recv == nil && (strings.HasPrefix(x.Name.Name, "Test") || strings.HasPrefix(x.Name.Name, "Example")) && strings.HasSuffix(e.Name(), "_test.go") {
					n.tests[x.Name.Name] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(x.Value); x.Kind == token.STRING && err == nil {
					n.cases[text] = true
				}
			}
			return true
		})
	}
	return n
}
