package operator

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/jobfile/outline"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// stepKinds knows the chunk steps of stored job files, by their version: other steps commit only at
// their end.
type stepKinds struct {
	jobs    *jobs
	records overviewRecords

	mu     sync.Mutex
	chunks map[string]map[string]bool // by the definition's hash, then the step
	of     map[core.JobExecutionID]string
}

const mostKinds = 10_000

func newStepKinds(jobs *jobs, records overviewRecords) *stepKinds {
	return &stepKinds{jobs: jobs, records: records, chunks: map[string]map[string]bool{}, of: map[core.JobExecutionID]string{}}
}

func (s *stepKinds) isChunk(ctx context.Context, step ports.OpenStep) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash, known := s.of[step.Execution]
	if !known {
		e, err := seen(ctx, s.records, step.Execution)
		if err != nil {
			return false, fmt.Errorf("read the definition of execution %d: %w", step.Execution, err)
		}
		if len(s.of) >= mostKinds {
			s.of, s.chunks = map[core.JobExecutionID]string{}, map[string]map[string]bool{}
		}
		if hash = e.Definition.Hash; s.chunks[hash] == nil {
			s.chunks[hash] = map[string]bool{}
			if file, _, err := s.jobs.storedFile(e.Definition, e.JobName); err == nil { // else no step of it is known
				addChunks(s.chunks[hash], file)
			}
		}
		s.of[step.Execution] = hash
	}
	name, _, _ := strings.Cut(step.Name, ":")
	return s.chunks[hash][name], nil
}

func addChunks(into map[string]bool, file *jobfile.File) {
	var add func(list []outline.Element)
	add = func(list []outline.Element) {
		for _, e := range list {
			into[e.Name] = e.Work == "chunk"
			for _, f := range e.Flows {
				add(f)
			}
		}
	}
	of := file.Outline()
	add(of.Flow)
	add(of.Finally)
}
