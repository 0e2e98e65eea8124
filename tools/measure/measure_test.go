package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoMeasureExceedsItsCeiling(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run([]string{"-root", "../.."}, &out); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, files map[string]string) *tree {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module m\n\nrequire (\n\ta v1\n\tb v1 // indirect\n)\n\nrequire c v1\n"
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTheMeasures(t *testing.T) {
	t.Parallel()
	got := map[string]float64{}
	measures, err := measureAll(write(t, map[string]string{
		"pkg/a/one.go": "// Package a says what it does.\npackage a\n\nimport \"" + module + "pkg/b\"\n\nvar (\n\tOne = two\n\tthree = `x\ny`\n)\n\n" +
			"type Wide interface {\n\tb.Narrow\n\tio\n\tF()\n}\n\ntype io interface{ F(); G() }\n\nfunc (t *T[K]) M() {}\n",
		"pkg/a/two.go":            "package a\n\nvar two = 2 // anew\n\nfunc Two() int { return len(three) }\n\ntype T[K any] struct{}\n",
		"pkg/a/a_test.go":         "package a\n\nvar Tested = 1\n",
		"pkg/b/b.go":              "package b\n\ntype Narrow interface{ H() }\n",
		"internal/testkit/kit.go": "package testkit\n",
		"docs/a.md":               "In hand, behind what is told\n```\nwhat\n```\n",
		"docs/reference/a.md":     "what what what\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range measures {
		got[m.key()] = m.value
	}
	for key, want := range map[string]float64{
		"modules direct": 2, "lines pkg/a": 18, "lines product": 20, "lines kits": 1,
		"exported pkg/a": 4, "exported total": 5, "folders pkg": 2, "methods pkg/a.T": 1,
		"interface pkg/a.Wide": 3, "interface pkg/b.Narrow": 1, "circle pkg/a": 2, "circle pkg/b": 1,
		"words total": 13, "idiom what": 1538.5, "idiom anew": 769.2, "idiom in hand": 769.2,
	} {
		if got[key] != want {
			t.Errorf("%s: got %g, want %g", key, got[key], want)
		}
	}
}

func TestCeilings(t *testing.T) {
	t.Parallel()
	measures := []measure{{"lines", "a", 120}, {"lines", "b", 30}, {"methods", "a.T", 41}, {"methods", "a.U", 40}, {"circle", "a", 3}}
	err := exceeded(measures, ceilings{"lines a": 110})
	for _, part := range []string{"lines a is 120, its ceiling 110", "lines b is 30 and has no ceiling", "methods a.T is 41, its ceiling 40"} {
		if !errors.Is(err, errExceeded) || !strings.Contains(err.Error(), part) {
			t.Errorf("want %q in %v", part, err)
		}
	}
	lower := lowered(measures, ceilings{"lines a": 110, "lines gone": 7, "methods a.T": 60, "circle a": 9})
	want := []measure{{"lines", "a", 110}, {"lines", "b", 50}, {"methods", "a.T", 41}}
	if len(lower) != len(want) {
		t.Fatalf("got %v, want %v", lower, want)
	}
	for i := range want {
		if lower[i] != want[i] {
			t.Errorf("got %v, want %v", lower[i], want[i])
		}
	}
	path := filepath.Join(t.TempDir(), "ceilings.txt")
	if err := writeCeilings(path, lower); err != nil {
		t.Fatal(err)
	}
	read, err := readCeilings(path)
	if err != nil || read["methods a.T"] != 41 || len(read) != 3 {
		t.Errorf("got %v, %v", read, err)
	}
}
