package rules_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// startedElsewhere lists tests and kits that start programs without testtree.Command, and why their
// results still reflect the tree.
func startedElsewhere() map[string]string {
	return map[string]string{
		"internal/testtree/":           "it is what the others use, and asks git",
		"internal/testdb/":             "servers; their version is in the name of the URL's file",
		"pkg/batch/batchtest/plain.go": "it builds what its own binary is built of",
		"internal/job/job_test.go":     "a sleep",
	}
}

// The test cache of Go does not know the files that a started program reads.
func TestATestStartsProgramsSoThatItsResultIsNotStale(t *testing.T) {
	t.Parallel()
	excepted, used := startedElsewhere(), map[string]bool{}
	var broken []string
	eachFile(t, func(file string, text []byte) {
		if !strings.HasSuffix(file, "_test.go") && (!strings.HasSuffix(file, ".go") || !isTestKit(path.Dir(file))) {
			return
		}
		if !startsPrograms.Match(text) { // to parse all of them takes seconds
			return
		}
		found, err := startedPrograms(file, text)
		require.NoError(t, err)
		for place := range excepted {
			if len(found) > 0 && strings.HasPrefix(file, place) {
				used[place] = true
				return
			}
		}
		broken = append(broken, found...)
	})
	require.Empty(t, broken, "use testtree.Command:\n%s", strings.Join(broken, "\n"))
	for place := range excepted {
		require.True(t, used[place], "%s starts nothing: take it off the list", place)
	}
}

var startsPrograms = regexp.MustCompile(`\bexec\b|StartProcess|\bsyscall\b|\bpackages\b`)

func TestAProgramThatATestStartsIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`exec.Command("go", "build")`:                       1,
		`exec.CommandContext(t.Context(), surfin)`:          1,
		`exec.CommandContext(t.Context(), os.Args[0], "x")`: 0,
		`exec.Command(os.Args[0])`:                          0,
		`&exec.Cmd{Path: surfin}`:                           1,
		`os.StartProcess(surfin, nil, nil)`:                 1,
		`packages.Load(nil, "./...")`:                       1,
		`testtree.Command(t.Context(), surfin)`:             0,
		`f(exec.Command)`:                                   1,
	} {
		file := []byte("package a\nvar _ = " + text + "\n")
		found, err := startedPrograms("a_test.go", file)
		require.NoError(t, err)
		require.True(t, len(found) == 0 || startsPrograms.Match(file), text)
		require.Len(t, found, want, text)
	}
}

// startedPrograms returns a line per place that starts a program other than the test's own binary.
func startedPrograms(file string, text []byte) (out []string, err error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	starts := []string{"exec.Command", "exec.CommandContext", "os.StartProcess", "syscall.Exec", "syscall.ForkExec", "packages.Load"}
	own := map[ast.Expr]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			own[n.Fun] = slices.ContainsFunc(n.Args[:min(len(n.Args), 2)], func(a ast.Expr) bool { return types.ExprString(a) == "os.Args[0]" })
		case *ast.CompositeLit:
			if n.Type != nil && types.ExprString(n.Type) == "exec.Cmd" {
				out = append(out, fmt.Sprintf("%s: exec.Cmd", set.Position(n.Pos())))
			}
		case *ast.SelectorExpr:
			if name := types.ExprString(n); slices.Contains(starts, name) && !own[n] {
				out = append(out, fmt.Sprintf("%s: %s", set.Position(n.Pos()), name))
			}
		}
		return true
	})
	return out, nil
}
