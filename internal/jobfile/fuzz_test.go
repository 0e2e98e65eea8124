package jobfile_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/broken/*.yaml", "testdata/valid/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	for _, text := range []string{"\ufeffjob: x", "a: *b", "? [a]: b", "a: &a\n  <<: *a", "%YAML 1.2\n---\njob: x", "job: \"\\x00\\u2028\"\n", "{", "'", "\t", "\r\n\r\njob:\r\n  x", "job: x\u0085flow: y"} {
		f.Add(text)
	}
	reg := described(f)
	f.Fuzz(func(t *testing.T, text string) { checkText(t, reg, text) })
}

// The same with the shipped components, from the jobs of the repository and the mistakes of newcomers.
func FuzzShipped(f *testing.F) {
	for _, pattern := range []string{"*.yaml", "cookbook/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "jobs", filepath.FromSlash(pattern)))
		if err != nil || len(paths) == 0 {
			f.Fatal(paths, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	mistakes, err := os.ReadFile("testdata/newcomers.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range strings.Split("\n"+string(mistakes), "\n== ")[1:] {
		_, rest, _ := strings.Cut(c, "\n")
		text, _, _ := strings.Cut(rest, "-- refused\n")
		f.Add(text)
	}
	reg := shipped(f)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "include") || strings.Contains(text, "file") {
			return // they would read data of this machine
		}
		checkText(t, reg, text)
	})
}

// checkText: a text is a job, or has problems within it. A job binds its defaults or reports mistakes, and
// its printed text is the same job.
func checkText(t *testing.T, reg *registry.Registry, text string) {
	t.Helper()
	file, err := jobfile.Parse("job.yaml", []byte(text), reg)
	if err != nil {
		if file != nil {
			t.Fatal("a file beside an error")
		}
		checkProblems(t, text, err)
		return
	}
	var list []core.Parameter
	for _, p := range file.Parameters() {
		if p.Default != nil {
			list = append(list, core.Parameter{Name: p.Name, Type: p.Type, Value: p.Default})
		}
	}
	params, err := core.NewParameters(list...)
	if err != nil {
		t.Fatal(err)
	}
	checkProblems(t, text, jobfile.Bind(context.Background(), file, params))
	checkPrinted(t, reg, file)
}

func checkPrinted(t *testing.T, reg *registry.Registry, file *jobfile.File) {
	t.Helper()
	printed := expanded(t, file)
	again, err := jobfile.Parse("job.yaml", printed, reg)
	if err != nil {
		t.Fatalf("it parses, and as it is printed not: %v\n%s", err, printed)
	}
	if again.Name() != file.Name() || again.Description() != file.Description() || !slices.Equal(again.Steps(), file.Steps()) {
		t.Fatalf("printed, it is another job:\n%s", printed)
	}
	if changes := jobfile.Compare(file, again, core.Parameters{}, nil); len(changes) > 0 {
		t.Fatalf("printed, it is another job: %v\n%s", changes, printed)
	}
	twice := expanded(t, again) // without the comments on templates
	last, err := jobfile.Parse("job.yaml", twice, reg)
	if err != nil {
		t.Fatalf("printed twice: %v\n%s", err, twice)
	}
	if thrice := expanded(t, last); !bytes.Equal(thrice, twice) {
		t.Fatalf("printed again, it differs:\n%s\n%s", twice, thrice)
	}
}

func expanded(t *testing.T, file *jobfile.File) []byte {
	t.Helper()
	text, err := file.Expanded()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func checkProblems(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var problems jobfile.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("not Problems: %v", err)
	}
	for _, p := range problems {
		if p.Line < 1 || p.Col < 1 || p.Line > len(text)+1 || p.Col > utf8.RuneCountInString(p.Excerpt)+1 || p.Msg == "" {
			t.Fatalf("problem at %d:%d of %q: %v", p.Line, p.Col, text, p)
		}
	}
	_ = problems.Error()
}
