package rules_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentenceEnd ends a sentence: a full stop or a colon before white space or the end.
var sentenceEnd = regexp.MustCompile(`[.:](\s|$)`)

var importsSentence = regexp.MustCompile(`(^|\n\n|[.:]\s)It (may )?imports? `)

func TestEveryPackageSaysItsPurposeAndWhatItMayImport(t *testing.T) {
	t.Parallel()
	docs := map[string][]string{}
	err := walkModule(root(t), func(file string, _ fs.DirEntry) error {
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), file), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := path.Dir(file)
		docs[dir] = append(docs[dir], packageDoc(parsed)...)
		return nil
	})
	require.NoError(t, err)
	var wrong []string
	for _, dir := range slices.Sorted(maps.Keys(docs)) {
		for _, why := range docMistakes(docs[dir]) {
			wrong = append(wrong, fmt.Sprintf("%s: %s", dir, why))
		}
	}
	require.Empty(t, wrong, "\n%s", strings.Join(wrong, "\n"))
}

func TestAPackageDocThatSaysTooLittleIsFound(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]int{
		"Package a adds.\n\nIt imports the standard library only.\n": 0,
		"Package a adds. It may import core and tx.\n":               0,
		"Package a adds.\n": 2,
		"Package a adds numbers.\nNobody knows what it imports.\n":       1,
		"Adds numbers.\n\nIt imports the standard library only.\n":       1,
		"Command a adds.\n\nIt imports the standard library, and pgx.\n": 0,
	} {
		require.Len(t, docMistakes([]string{doc}), want, doc)
	}
	require.Len(t, docMistakes(nil), 1)
}

func packageDoc(f *ast.File) []string {
	if f.Doc == nil || strings.TrimSpace(f.Doc.Text()) == "" {
		return nil
	}
	return []string{f.Doc.Text()}
}

// docMistakes returns the omissions of the doc comments of one package. Files with different build
// constraints may each have one.
func docMistakes(docs []string) []string {
	if len(docs) == 0 {
		return []string{"there is no package comment"}
	}
	var out []string
	for _, doc := range docs {
		if !strings.HasPrefix(doc, "Package ") && !strings.HasPrefix(doc, "Command ") {
			out = append(out, fmt.Sprintf("the package comment begins with %.30q", doc))
		}
		if len(sentenceEnd.FindAllString(doc, -1)) < 2 {
			out = append(out, "the package comment has fewer than two sentences")
		}
		if !importsSentence.MatchString(doc) {
			out = append(out, `no sentence of the package comment begins with "It imports" or "It may import"`)
		}
	}
	return out
}
