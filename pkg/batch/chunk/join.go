package chunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// noteTogether stores the targets of all parts as a position of the whole step before a part exists, so that leftovers
// of completed parts are found and removed even if the step never completes.
func (s *Step) noteTogether(ctx context.Context, run *model.StepRun) error {
	if s.config.Together == nil {
		return nil
	}
	paths, err := s.config.Together(ctx, run)
	if err != nil {
		return err
	}
	var at position
	for i, path := range paths {
		text, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			return err
		}
		at.setWriter(i, text)
	}
	return s.keepPosition(ctx, run, at)
}

func (s *Step) keepPosition(ctx context.Context, run *model.StepRun, at position) error {
	text, err := at.encode()
	if err == nil {
		err = run.Services.Plans.SaveStepPosition(ctx, run.Ref, text)
	}
	if err != nil {
		return err
	}
	run.Step.Position = text
	return nil
}

// JoinsParts implements model.PartsJoiner.
func (s *Step) JoinsParts() bool { return s.config.JoinWriters != nil }

// JoinParts implements model.PartsJoiner. As at the end of a step without parts, the position of the whole output is
// committed before it is published.
func (s *Step) JoinParts(ctx context.Context, run *model.StepRun, parts []core.StepExecution) (err error) {
	writers, err := s.config.JoinWriters(ctx, run)
	if err != nil {
		return err
	}
	ends := make([]position, len(parts))
	for i, part := range parts {
		if ends[i], err = parsePosition(part.Position); err != nil {
			return fmt.Errorf("partition %s: %w", part.Name, err)
		}
	}
	at, err := parsePosition(run.Step.Position)
	if err != nil {
		return err
	}
	var all joiners
	defer func() {
		for _, j := range slices.Backward(all) {
			err = errors.Join(err, guarded(func() error { return j.Close(context.WithoutCancel(ctx)) }))
		}
	}()
	for i, w := range writers {
		if w == nil {
			continue
		}
		j := optional[itemextra.Joiner](w.Component())
		if j == nil || !j.Joins() {
			return fmt.Errorf("writer %d cannot join parts", i+1)
		}
		from := make([]item.Position, len(ends))
		for k := range ends {
			from[k] = ends[k].writer(i)
		}
		all = append(all, joiner{j, i})
		if err := guarded(func() error { return j.JoinParts(ctx, at.writer(i), from) }); err != nil {
			return fmt.Errorf("join the parts: %w", err)
		}
	}
	return s.publishJoined(ctx, run, all)
}

type joiner struct {
	itemextra.Joiner
	place int // of the writer
}

type joiners []joiner

// publishJoined commits twice if a publication has to be staged, as pipeline.finish does.
func (s *Step) publishJoined(ctx context.Context, run *model.StepRun, all joiners) error {
	staged := false
	err := s.keepJoined(ctx, run, all)
	if err == nil {
		err = all.finish(ctx, run, func(j itemextra.Joiner) error {
			one, err := itemextra.Stage(ctx, j)
			staged = staged || one
			return err
		})
	}
	if err == nil && staged {
		err = s.keepJoined(ctx, run, all)
	}
	if err != nil {
		return err
	}
	return all.finish(ctx, run, func(j itemextra.Joiner) error { return j.Finish(ctx) })
}

// keepJoined commits the positions of the whole outputs.
func (s *Step) keepJoined(ctx context.Context, run *model.StepRun, all joiners) error {
	var next position
	for _, j := range all {
		err := guarded(func() error {
			end, err := j.Position()
			next.setWriter(j.place, end)
			return err
		})
		if err != nil {
			return fmt.Errorf("join the parts: %w", err)
		}
	}
	if err := s.keepPosition(ctx, run, next); err != nil {
		return err
	}
	for _, j := range all {
		if err := guarded(func() error { return j.Release(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (all joiners) finish(ctx context.Context, run *model.StepRun, f func(itemextra.Joiner) error) error {
	for _, j := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := run.Services.Lease.Err()
		if err == nil {
			err = guarded(func() error { return f(j.Joiner) })
		}
		if err != nil {
			return fmt.Errorf("finish: %w", err)
		}
	}
	return nil
}
