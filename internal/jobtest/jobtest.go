// Package jobtest runs tests of jobs that are written in YAML (internal/jobfile/testfile): each in
// its own temporary folder, on fresh databases, with the real engine.
//
// It imports operator, internal/jobfile/testfile, core, tx, internal/sqlvalue and
// internal/sqlscript.
package jobtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/testfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Result is the result of one test.
type Result struct {
	Name        string        `json:"name"`
	Duration    time.Duration `json:"duration"`
	Differences []string      `json:"differences,omitempty"`
}

// Run runs the tests in order and passes each result to see; its errors belong to no single
// test.
func Run(ctx context.Context, file *testfile.File, config Config, see func(Result)) error {
	carried := config.Carries != nil && config.Carries(file.Name)
	if _, err := os.Stat(file.Job); err != nil && !carried {
		return fmt.Errorf("%s: job: this program has no job %s, and no such file exists: %w", file.Path, file.Name, err)
	}
	sources, err := sourcesOf(file, config)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	for i := range file.Tests {
		if err := ctx.Err(); err != nil {
			return err
		}
		begun := time.Now()
		r := Result{Name: file.Tests[i].Name}
		s := &stand{test: &file.Tests[i], file: file, carried: carried, open: config.Open, sources: sources, zoneOf: config.Zone}
		differences, err := s.run(ctx)
		if err != nil {
			differences = append(differences, err.Error())
		}
		r.Differences, r.Duration = differences, time.Since(begun)
		see(r)
	}
	return nil
}

type stand struct {
	test    *testfile.Test
	file    *testfile.File
	carried bool // the job is embedded in the program
	open    Open
	sources map[string]string
	zoneOf  func(job string) *time.Location
	zone    *time.Location // of the job; nil is UTC
	dir     string
	dbs     map[string]tx.Database
	exec    *operator.Execution
	*Session
}

func (s *stand) run(ctx context.Context) (differences []string, err error) {
	base, err := os.MkdirTemp("", "surfin-test-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for the test: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	s.dir = filepath.Join(base, "job")
	if err := s.lay(); err != nil {
		return nil, err
	}
	s.findZone()
	urls, drop, err := makeDatabases(ctx, s.sources, s.open, base)
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
	if err != nil {
		return nil, err
	}
	if s.Session, err = s.open(ctx, urls); err != nil {
		return nil, fmt.Errorf("open the databases of the test: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	s.dbs = map[string]tx.Database{}
	for name := range urls {
		if s.dbs[name], err = s.Provider.Database(name); err != nil {
			return nil, err
		}
	}
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	s.exec, err = s.Service.Run(ctx, s.request())
	if err != nil {
		if s.test.Expect.Error != "" && strings.Contains(err.Error(), s.test.Expect.Error) {
			return nil, nil
		}
		return nil, fmt.Errorf("the job was not run: %w", err)
	}
	return s.compare(ctx)
}

// findZone finds the zone of the local times (rule D5).
func (s *stand) findZone() {
	if s.zoneOf == nil {
		return
	}
	r := s.request()
	if s.zone = s.zoneOf(cmp.Or(r.File, r.Name)); s.zone == time.UTC {
		s.zone = nil
	}
}

func (s *stand) request() operator.RunRequest {
	r := operator.RunRequest{Params: s.test.Params, Folder: s.dir}
	if s.carried {
		r.Name = s.file.Name
	} else {
		r.File = filepath.Join(s.dir, filepath.Base(s.file.Job))
	}
	return r
}

func (s *stand) lay() error {
	from, names := filepath.Dir(s.file.Job), s.test.With
	if s.carried {
		from = filepath.Dir(s.file.Path)
	} else {
		names = append([]string{filepath.Base(s.file.Job)}, names...)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for _, name := range names {
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

func (s *stand) path(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("files: %s is outside the folder of the test", name)
	}
	return filepath.Join(s.dir, filepath.FromSlash(name)), nil
}

func copyTree(from, to, name string) error {
	if !filepath.IsLocal(name) {
		return errors.New("it is outside the folder of the job file")
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
