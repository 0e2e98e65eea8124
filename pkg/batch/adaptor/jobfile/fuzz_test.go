package jobfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Whatever the text: no panic, and every problem has a place within the file.
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
	f.Fuzz(func(t *testing.T, text string) {
		file, err := jobfile.Parse("job.yaml", []byte(text), reg)
		if err == nil {
			// Values are bound without a panic, whatever they are.
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
			err = jobfile.Bind(context.Background(), file, params)
			checkProblems(t, text, err)
			return
		}
		if file != nil {
			t.Fatal("a file beside an error")
		}
		checkProblems(t, text, err)
	})
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
