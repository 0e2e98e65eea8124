// Package testtree makes Go's test cache aware of the inputs that tests pass to other programs: `go
// test` sees only the inputs of the test process. A test that starts a program uses Command, which
// ties its result to this tree; one that starts its own binary (os.Args[0]) does not need it.
//
// It imports nothing of ours. Only tests and internal/testdb/cluster import it.
package testtree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Variable names the variable with the tree's Sum, set by internal/testdb/cluster when the tests
// begin.
const Variable = "SURFIN_TEST_TREE"

// Command is exec.CommandContext in a test that depends on every file of the module.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	depend()
	return exec.CommandContext(ctx, name, args...) //nolint:gosec // of a test
}

func depend() {
	if os.Getenv(Variable) != "" {
		return
	}
	root, err := Root()
	if err != nil {
		panic(err) // a test runs in the folder of its package
	}
	if err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // another test's file
		case err == nil && d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		}
		return err
	}); err != nil {
		panic(err)
	}
}

// Root returns the folder of go.mod, at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("there is no go.mod at or above the working directory")
		}
		dir = above
	}
}

// Sum hashes names, modes and contents of the files that git has or would add; it fails outside a
// checkout.
func Sum(ctx context.Context, root string) (string, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the files of %s: %w", root, err)
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range slices.Compact(names) { // of a merge a name comes several times
		text, mode, err := read(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but still in the index of git
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %v %d\n", name, mode, len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func read(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	var text []byte
	switch mode := info.Mode(); {
	case mode.IsRegular():
		text, err = os.ReadFile(path) //nolint:gosec // git named it
	case mode&fs.ModeSymlink != 0:
		var to string
		to, err = os.Readlink(path)
		text = []byte(to)
	}
	return text, info.Mode(), err
}
