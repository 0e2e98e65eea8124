package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// refused gives a refused launch its ways out.
func (p *program) refused(ctx context.Context, s *Session, err error, j *core.Job, l launch) error {
	var complete *core.InstanceCompleteError
	var running *core.AlreadyRunningError
	again := "a new instance:  " + p.command(runWords(l.path, declaredWords(j, l.params), "--again")...)
	code, hints := codeOf(err), p.hints(err)
	switch {
	case errors.As(err, &complete):
		if other, ok := otherParameter(j, l.params); ok {
			hints = append(hints, "another instance:  "+p.command(runWords(l.path, other)...))
		}
		if j.Incrementer != nil {
			hints = append(hints, "the next one:      "+p.command("next", l.path))
		}
		hints = append(hints, "the same again:    "+p.command(runWords(l.path, declaredWords(j, l.params), "--again")...), "what it did:       "+p.command("show", idText(complete.Execution.ID)))
	case errors.As(err, &running):
		hints = append(hints, p.runningHints(running.ExecutionID, running.Owner)...)
	case errors.Is(err, core.ErrUnknownStatus):
		hints = append(append(hints, p.unknownHints(ctx, s, j, l)...), again)
	case code == ExitRefused:
		hints = append(hints, "its history:     "+p.command("list", "--job", j.Name), again)
	case errors.As(err, new(jobfile.Problems)):
		code = ExitUsage
	}
	return &exitError{code: code, err: err, hints: hints}
}

// runningHints are the ways out of "it is running".
func (p *program) runningHints(id core.JobExecutionID, owner core.Owner) []string {
	hints := []string{"what it does:  " + p.command("show", idText(id))}
	if job.DeadOwner(owner) {
		return append(hints, "its process is dead; end it:  "+p.command("recover"))
	}
	return append(hints,
		"stop it:       "+p.command("stop", idText(id), "--wait", "5m"),
		"if its process is gone:  "+p.command("recover"))
}

// unknownHints are the ways out of an execution of which nobody knows whether its
// last work is committed.
func (p *program) unknownHints(ctx context.Context, s *Session, j *core.Job, l launch) []string {
	last, err := s.Repository.LastExecution(ctx, j.Name, l.params.Key())
	if err != nil {
		return []string{"its history:     " + p.command("list", "--job", j.Name)}
	}
	return []string{
		"what it did:     " + p.command("show", idText(last.ID)),
		"give it up:      " + p.command("abandon", idText(last.ID)) + "   (once you have looked)",
	}
}

// anewHints are the ways to a new instance after an execution that does not go on.
func (p *program) anewHints(e core.JobExecution) []string {
	if e.Definition.Path == "" || e.RedriveOf != 0 {
		return nil
	}
	var words []string
	for _, q := range e.Params.All() {
		if q.Name != againName {
			words = append(words, canonicalWord(q))
		}
	}
	return []string{"a new instance:  " + p.command(runWords(e.Definition.Path, words, "--again")...)}
}

func runWords(path string, parameters []string, flags ...string) []string {
	return slices.Concat([]string{"run", path}, parameters, flags)
}
