package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/wording"
)

func (env *environment) refusal(err error) error {
	var r *operator.Refusal
	if !errors.As(err, &r) {
		return err
	}
	err = r.Err
	switch r.Reason { //nolint:exhaustive // the others are said as they are
	case refusal.NotFound:
		if r.Execution != 0 {
			err = fmt.Errorf("no execution %d in %s", r.Execution, env.databaseText(env.settings.Repository.Database))
		}
	case refusal.Changed:
		err = changedText(r)
	case refusal.Schema:
		err = fmt.Errorf("%s: %w", env.databaseText(env.settings.Repository.Database), err)
	}
	return &exitError{code: operator.ExitCode(r), err: err, hints: append(wording.DiffLines(r.Diff), env.words().Refusal(r)...)}
}

func changedText(r *operator.Refusal) error {
	lines := []error{fmt.Errorf("the job file has changed since execution %d, and the changes affect committed work", r.Last)}
	if changed, is := errors.AsType[*jobfile.ChangedError](r.Err); is {
		lines[0] = errors.New(changed.Summary(r.Last))
	}
	for _, line := range r.Details {
		lines = append(lines, errors.New(line))
	}
	return errors.Join(lines...)
}

func hintText(hints []string) string {
	var b strings.Builder
	for _, h := range hints {
		b.WriteString("  " + h + "\n")
	}
	return b.String()
}
