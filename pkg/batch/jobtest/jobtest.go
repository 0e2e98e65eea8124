// Package jobtest runs tests of jobs that are written in YAML (adaptor/jobfile/testfile):
// each in a temporary folder of its own, on a fresh SQLite database, with the real engine.
// The command `test` is a client of it.
//
// It imports operator, adaptor/jobfile/testfile, core, tx, internal/sqlvalue and internal/sqlscript.
package jobtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/testfile"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Session is what a test runs in.
type Session struct {
	Service  *operator.Service
	Provider tx.Provider
	Close    func(ctx context.Context) error
}

// Open opens a session on the database of a URL.
type Open func(ctx context.Context, url string) (*Session, error)

// Result is what came of one test.
type Result struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration"`
	// Differences are what is not as expected, each with a title and lines; none: it passed.
	Differences []string `json:"differences,omitempty"`
}

// Run runs the tests of a file, in order, and hands each result to see. Only what is about
// no single test is an error.
func Run(ctx context.Context, file *testfile.File, open Open, see func(Result)) error {
	if _, err := os.Stat(file.Job); err != nil {
		return fmt.Errorf("%s: job: %w", file.Path, err)
	}
	for i := range file.Tests {
		if err := ctx.Err(); err != nil {
			return err
		}
		begun := time.Now()
		r := Result{Name: file.Tests[i].Name}
		differences, err := runOne(ctx, file, &file.Tests[i], open)
		if err != nil {
			differences = append(differences, err.Error())
		}
		r.Differences, r.Duration = differences, time.Since(begun)
		see(r)
	}
	return nil
}

// stand is one test while it runs.
type stand struct {
	test *testfile.Test
	dir  string
	db   tx.Database
	exec *operator.Execution
	*Session
}

func runOne(ctx context.Context, file *testfile.File, t *testfile.Test, open Open) (differences []string, err error) {
	base, err := os.MkdirTemp("", "surfin-test-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the test: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	s := &stand{test: t, dir: filepath.Join(base, "job")}
	if err := s.lay(file); err != nil {
		return nil, err
	}
	if s.Session, err = open(ctx, "sqlite:"+filepath.Join(base, "test.db")); err != nil {
		return nil, fmt.Errorf("open the database of the test: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	if s.db, err = s.Provider.Database(tx.Default); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	s.exec, err = s.Service.Run(ctx, operator.RunRequest{File: filepath.Join(s.dir, filepath.Base(file.Job)), Params: t.Params, Folder: s.dir})
	if err != nil {
		if t.Expect.Error != "" && strings.Contains(err.Error(), t.Expect.Error) {
			return nil, nil
		}
		return nil, fmt.Errorf("the job was not run: %w", err)
	}
	return s.compare(ctx)
}

// lay writes the folder of the test.
func (s *stand) lay(file *testfile.File) error {
	from := filepath.Dir(file.Job)
	for _, name := range append([]string{filepath.Base(file.Job)}, s.test.With...) {
		if err := copyTree(from, s.dir, filepath.FromSlash(name)); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	for name, content := range s.test.Files {
		path, err := s.path(name)
		if err != nil {
			return err
		}
		text, err := fileText(name, content)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// path is that of a file of the test's folder.
func (s *stand) path(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("files: %s leads out of the folder of the test", name)
	}
	return filepath.Join(s.dir, filepath.FromSlash(name)), nil
}

func copyTree(from, to, name string) error {
	if !filepath.IsLocal(name) {
		return errors.New("it leads out of the folder of the job file")
	}
	return filepath.WalkDir(filepath.Join(from, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}
