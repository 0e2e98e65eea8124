package rules_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
)

const maxLines = 500

func TestNoGoFileIsLongerThanFiveHundredLines(t *testing.T) {
	t.Parallel()
	eachFile(t, func(file string, text []byte) {
		if strings.HasSuffix(file, ".go") {
			require.LessOrEqual(t, bytes.Count(text, []byte("\n")), maxLines, "%s is too long: split it by what it tells", file)
		}
	})
}

// Rule SE3.
func TestComponentsOpenFilesThroughTheirConfinement(t *testing.T) {
	t.Parallel()
	direct := regexp.MustCompile(`\bos\.(Open|OpenFile|OpenRoot|ReadFile|ReadDir|Stat|Lstat|Create|WriteFile|Remove|RemoveAll|Rename|Mkdir|MkdirAll|Link|Symlink|Readlink|Truncate|Chtimes|Chmod)\(`)
	rooms := []string{"pkg/batch/adaptor/item/", "pkg/batch/adaptor/tasklet/", "pkg/batch/adaptor/partition/", "contrib/parquet/", "internal/place/", "internal/filestream/", "internal/jsonfile/", "internal/recordtypes/"}
	allowed := map[string]bool{"internal/filestream/part.go": true} // leftovers of an abandoned step, by the names in the history
	eachFile(t, func(file string, text []byte) {
		inRoom := slices.ContainsFunc(rooms, func(room string) bool { return strings.HasPrefix(file, room) })
		if !inRoom || allowed[file] || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		require.Empty(t, string(direct.Find(text)), "%s: use the confine.Files of the context", file)
	})
}

func TestNoCodeHidesInInitAndNoPackageHasMutableState(t *testing.T) {
	t.Parallel()
	packages := map[string]map[string][]byte{} // folder -> file -> text
	eachFile(t, func(file string, text []byte) {
		if strings.HasSuffix(file, ".go") {
			dir := path.Dir(file)
			if packages[dir] == nil {
				packages[dir] = map[string][]byte{}
			}
			packages[dir][file] = text
		}
	})
	var broken []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		found, err := hiddenState(packages[dir])
		require.NoError(t, err)
		broken = append(broken, found...)
	}
	require.Empty(t, broken, "\n%s", strings.Join(broken, "\n"))
}

func TestHiddenStateIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"func init() {}":  "init()",
		"var counter int": "no initial value",
		"var cache = map[string]int{}\nfunc f() { cache[``]++ }": "written by",
		"var list = []int{1}\nfunc f() { list = nil }":           "written by",
		"var list = []int{1}\nfunc f() { clear(list) }":          "written by",
		"var n = [...]int{1}\nfunc f() *int { return &n[0] }":    "written by",
		"var Names = []string{`a`}":                              "exported",
		"var once = sync.OnceValue(f)":                           "sync.OnceValue",
		"var n = [...]int{1}\nfunc f() { n := 1; n++ }":          "",
		"var mu sync.Mutex":                                      "no initial value",
		"var errGone = errors.New(`gone`)":                       "",
		"var ErrGone = fmt.Errorf(`gone: %w`, errOld)":           "",
		"var ErrFilter = item.ErrFilter":                         "",
		"var pattern = regexp.MustCompile(`a`)":                  "",
		"var names = [...]string{`a`}\nvar x = names":            "allowed initial values",
		"var byName = map[string]int{`a`: 1}":                    "",
		"var _ io.Reader = (*os.File)(nil)":                      "",
		"//go:embed a.sql\nvar files embed.FS":                   "",
		"func (t T) init() {}":                                   "",
	} {
		found, err := hiddenState(map[string][]byte{"a.go": []byte("package a\n" + text + "\n")})
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, found, text)
			continue
		}
		require.Len(t, found, 1, text)
		require.Contains(t, found[0], want)
	}
}

// hiddenState returns one line per init function and per package-level
// variable that could change. Allowed are error values, compiled patterns,
// embedded files, `var _` assertions, and unexported literals that nothing in
// the package writes.
func hiddenState(files map[string][]byte) ([]string, error) {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := parser.ParseFile(set, name, files[name], parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	written := writtenNames(parsed)
	var out []string
	for _, f := range parsed {
		file := set.Position(f.Pos()).Filename
		isTest := strings.HasSuffix(file, "_test.go") || isTestKit(path.Dir(file))
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				out = append(out, fmt.Sprintf("%s: init() hides code from its caller", set.Position(fn.Pos())))
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR && !isTest {
				for _, s := range g.Specs {
					for _, why := range mutable(g, s.(*ast.ValueSpec), written) {
						out = append(out, fmt.Sprintf("%s: %s", set.Position(s.Pos()), why))
					}
				}
			}
		}
	}
	return out, nil
}

func mutable(g *ast.GenDecl, s *ast.ValueSpec, written map[string]string) []string {
	if isEmbedded(g.Doc) || isEmbedded(s.Doc) {
		return nil
	}
	var out []string
	for i, name := range s.Names {
		switch {
		case name.Name == "_":
		case len(s.Values) != len(s.Names):
			out = append(out, fmt.Sprintf("variable %s has no initial value of its own", name.Name))
		case written[name.Name] != "":
			out = append(out, fmt.Sprintf("variable %s is written by %s", name.Name, written[name.Name]))
		default:
			if why := notConstant(name, s.Values[i]); why != "" {
				out = append(out, fmt.Sprintf("variable %s %s", name.Name, why))
			}
		}
	}
	return out
}

// notConstant returns why the value may change; empty if it cannot.
func notConstant(name *ast.Ident, value ast.Expr) string {
	const allowed = "is none of the allowed initial values (errors, patterns, literals)"
	switch v := value.(type) {
	case *ast.BasicLit, *ast.CompositeLit:
		if name.IsExported() {
			return "is exported: anybody could write it; answer it from a function"
		}
		return ""
	case *ast.SelectorExpr: // an error value of another package under our name
		if strings.HasPrefix(name.Name, "Err") && strings.HasPrefix(v.Sel.Name, "Err") {
			return ""
		}
	case *ast.CallExpr:
		sel, ok := v.Fun.(*ast.SelectorExpr)
		if !ok {
			return allowed
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok {
			return allowed
		}
		switch call := pkg.Name + "." + sel.Sel.Name; call {
		case "errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer":
			return ""
		default:
			return fmt.Sprintf("starts as %s(): %s", call, allowed)
		}
	}
	return allowed
}

func isEmbedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// writtenNames returns the names that are assigned to, changed in place, or have their address taken,
// and the reason. Local variables are left out.
func writtenNames(files []*ast.File) map[string]string {
	global := map[*ast.ValueSpec]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, s := range g.Specs {
					global[s.(*ast.ValueSpec)] = true
				}
			}
		}
	}
	out := map[string]string{}
	note := func(e ast.Expr, by string) {
		id := base(e)
		if id == nil {
			return
		}
		if id.Obj != nil { // resolved in its file: a variable of the package, or a local one
			if spec, ok := id.Obj.Decl.(*ast.ValueSpec); !ok || !global[spec] {
				return
			}
		}
		out[id.Name] = by
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						note(e, "an assignment")
					}
				}
			case *ast.IncDecStmt:
				note(n.X, n.Tok.String())
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X, "whoever holds its address")
				}
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (fn.Name == "delete" || fn.Name == "clear" || fn.Name == "copy") {
					note(n.Args[0], fn.Name)
				}
			}
			return true
		})
	}
	return out
}

// base returns the variable of an expression such as a.b[i], or nil.
func base(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.SelectorExpr:
		return base(e.X)
	case *ast.SliceExpr:
		return base(e.X)
	case *ast.StarExpr:
		return base(e.X)
	case *ast.ParenExpr:
		return base(e.X)
	}
	return nil
}

func TestNoFileNamesAMachineOrARegistry(t *testing.T) {
	t.Parallel()
	// Put together here, so that this file does not find itself.
	folders := []string{"/work" + "/", "/home" + "/", "/root" + "/", "/Users" + "/", `C:\` + "Users"}
	hosts := []string{"proxy.golang" + ".org", "sum.golang" + ".org", "GO" + "PROXY", "GO" + "SUMDB", "registry.npmjs" + ".org"}
	briefs := []string{"../sh" + "ared"}
	var broken []string
	eachFile(t, func(file string, text []byte) {
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.ReplaceAll(line, "/home"+"/me/", "") // the reader's own, in an example
			for _, word := range slices.Concat(folders, hosts, briefs) {
				if strings.Contains(line, word) {
					broken = append(broken, fmt.Sprintf("%s:%d: %s", file, i+1, word))
				}
			}
		}
	})
	require.Empty(t, broken, "these work on one machine only:\n%s", strings.Join(broken, "\n"))
}

func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	t.Parallel()
	dir := root(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	known := map[string][]string{}
	eachFile(t, func(file string, text []byte) {
		if !strings.HasSuffix(file, ".md") {
			return
		}
		for _, m := range link.FindAllStringSubmatch(prose(string(text)), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found := file
			if target != "" {
				found = path.Join(path.Dir(file), target)
			}
			_, err := os.Stat(filepath.Join(dir, found))
			require.NoError(t, err, "%s: link %s", file, m[1])
			if anchor != "" && strings.HasSuffix(found, ".md") {
				if known[found] == nil {
					page, err := os.ReadFile(filepath.Join(dir, found))
					require.NoError(t, err)
					known[found] = anchors(string(page))
				}
				require.Contains(t, known[found], anchor, "%s: link %s", file, m[1])
			}
		}
	})
}

func prose(page string) string {
	page = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(page, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(page, "")
}

func anchors(page string) []string {
	var out []string
	page = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(page, "")
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.+?)\s*$`).FindAllStringSubmatch(page, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// TestEveryRuleHasANumberOfItsOwn, by which code and tests cite it, and the index lists it once.
func TestEveryRuleHasANumberOfItsOwn(t *testing.T) {
	t.Parallel()
	known := rules(t)
	require.Greater(t, len(known), 100)
	index, err := os.ReadFile(filepath.Join(root(t), "docs", "semantics.md"))
	require.NoError(t, err)
	listed := map[string]string{}
	for _, m := range regexp.MustCompile(`\[([A-Z]+[0-9]+[a-z]*)\]\(([^)#]*)#([^)]*)\)`).FindAllStringSubmatch(string(index), -1) {
		require.NotContains(t, listed, m[1], "rule %s is in the index twice", m[1])
		require.Equal(t, strings.ToLower(m[1]), m[3], "the link of rule %s", m[1])
		listed[m[1]] = "docs/" + m[2]
	}
	require.Equal(t, known, listed, "docs/semantics.md is the index of docs/semantics")
}

// TestEveryRuleThatIsCitedExists, in code, in SQL, in jobs and on the pages.
func TestEveryRuleThatIsCitedExists(t *testing.T) {
	t.Parallel()
	known, n := rules(t), 0
	number := `[A-Z]{1,2}[0-9]+[a-z]*`
	cited := regexp.MustCompile(`\b[Rr]ules? \[?` + number + `(?:(?:, | and | to |; )` + number + `)*`)
	eachFile(t, func(file string, text []byte) {
		for _, citation := range cited.FindAllString(string(text), -1) {
			for _, id := range regexp.MustCompile(number).FindAllString(citation, -1) {
				n++
				require.Contains(t, known, id, "%s cites %q", file, citation)
			}
		}
		if path.Dir(file) != "docs/semantics" {
			return
		}
		for _, id := range regexp.MustCompile(`\b(?:AP|IL|OP|PL|PU|SE|SM|TL|TO|TS|TW|[CDEFIJLOPRSTW])[0-9]+[a-z]*\b`).FindAllString(prose(string(text)), -1) {
			require.Contains(t, known, id, "%s cites %s", file, id)
		}
	})
	require.Greater(t, n, 200)
}

// rules are the numbers of all rules, each with its page.
func rules(t *testing.T) map[string]string {
	t.Helper()
	known := map[string]string{}
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "semantics", "*.md"))
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^### ([A-Z]+[0-9]+[a-z]*)$`).FindAllStringSubmatch(string(text), -1) {
			require.NotContains(t, known, m[1], "%s: rule %s is there twice", page, m[1])
			known[m[1]] = "docs/semantics/" + filepath.Base(page)
		}
	}
	return known
}

func TestTheStatusTableOfThePagesIsTheOneOfTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "semantics", "identity.md"))
	require.NoError(t, err)
	for _, m := range ports.Executions().Moves() {
		var from []string
		for _, s := range m.From {
			from = append(from, string(s))
		}
		require.Contains(t, string(page), fmt.Sprintf("| %s | %s | %s |", m.Name, strings.Join(from, ", "), m.To), "rule D3")
	}
}

func TestTheExamplesAreShortAndThePagesShowTheHelloWorldThatCompiles(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(root(t), file))
		require.NoError(t, err)
		return string(text)
	}
	hello := read("example/hello/main.go")
	require.LessOrEqual(t, strings.Count(hello, "\n"), 20)
	require.LessOrEqual(t, strings.Count(read("example/birdstrikes/main.go"), "\n"), 150)
	for _, page := range []string{"README.md", "docs/tutorial.md"} {
		require.Contains(t, read(page), hello, page)
	}
}

// eachFile visits the text files of the module, except data, built binaries, databases and leftovers of
// runs.
func eachFile(t *testing.T, visit func(file string, text []byte)) {
	t.Helper()
	dir := root(t)
	left := []string{".sum", ".csv", ".db", ".db-wal", ".db-shm", ".part", ".gz"}
	n := 0
	err := walkModule(dir, func(file string, _ fs.DirEntry) error {
		if slices.Contains(left, filepath.Ext(file)) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) < 0 {
			n++
			visit(file, text)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, n, 20, "the tree was not found")
}
