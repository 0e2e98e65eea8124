package operator

import (
	"context"
	"errors"
	"sync"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// FileProblem is a mistake in a job file, or in one that it names.
type FileProblem struct {
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 if the mistake has no position.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	// Cure is a hint, if there is one.
	Cure string `json:"cure,omitempty"`
}

func fileProblems(path string, err error) []FileProblem {
	if err == nil {
		return nil
	}
	problems, is := errors.AsType[jobfile.Problems](err)
	if !is {
		return []FileProblem{{File: path, Message: secret.Text(err.Error())}}
	}
	list := make([]FileProblem, len(problems))
	for i, p := range problems {
		list[i] = FileProblem{File: p.File, Line: p.Line, Column: p.Col, Message: secret.Text(p.Msg), Cure: secret.Text(p.Hint)}
	}
	return list
}

// wrongFile has the mistakes in the file of a job.
type wrongFile struct {
	job, path string
	// registered: the stored file is wrong; else the one on the disk.
	registered bool
	problems   []FileProblem
}

// fileChecks finds wrong job files. Stored ones are checked once for each version.
type fileChecks struct {
	jobs       *jobs
	registered taskports.Definitions // may be nil

	mu     sync.Mutex
	stored map[string][]FileProblem // by version
}

// of returns the wrong ones of these files of a catalog, and of registered jobs.
func (s *fileChecks) of(ctx context.Context, in []catalog.Checked, definitions []taskports.Definition) ([]wrongFile, error) {
	var wrong []wrongFile
	for _, c := range in {
		if c.Err != nil {
			wrong = append(wrong, wrongFile{job: c.JobName, path: c.Path, problems: fileProblems(c.Path, c.Err)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range definitions {
		problems, known := s.stored[d.Files.Hash]
		if !known {
			var err error
			if problems, err = s.check(ctx, d.Name); err != nil {
				return nil, err
			}
			s.stored[d.Files.Hash] = problems
		}
		if len(problems) > 0 {
			wrong = append(wrong, wrongFile{job: d.Name, path: d.Files.Path, registered: true, problems: problems})
		}
	}
	return wrong, nil
}

func (s *fileChecks) check(ctx context.Context, name string) ([]FileProblem, error) {
	d, err := s.registered.Definition(ctx, name)
	switch {
	case errors.Is(err, core.ErrNotFound): // it was unregistered meanwhile
		return nil, nil
	case errors.Is(err, ports.ErrUnreadable):
		return fileProblems(d.Files.Path, err), nil
	case err != nil:
		return nil, err
	}
	_, _, err = s.jobs.storedFile(d.Files, name)
	return fileProblems(d.Files.Path, err), nil
}

// patiently calls f with the patience of ctx (rule O1).
func patiently[T any](ctx context.Context, f func(ctx context.Context) (T, error)) (answer T, err error) {
	err = model.Patiently(ctx, func(ctx context.Context) (err error) {
		answer, err = f(ctx)
		return err
	})
	return answer, err
}
