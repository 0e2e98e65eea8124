package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// hint is a way out: what it is, and the command for it.
type hint struct{ label, text string }

// maxLabel is the width of a label beyond which the others are not aligned to it.
const maxLabel = 16

// hintLines writes hints below each other, their commands aligned.
func hintLines(list []hint) []string {
	width := 0
	for _, h := range list {
		if len(h.label) <= maxLabel {
			width = max(width, len(h.label))
		}
	}
	lines := make([]string, len(list))
	for i, h := range list {
		lines[i] = fmt.Sprintf("%-*s  %s", width+1, h.label+":", h.text)
	}
	return lines
}

// actionHints are the ways out of a Refusal.
func (env *environment) actionHints(r *operator.Refusal) []string {
	var list []hint
	for _, a := range r.Actions {
		h := env.actionHint(a)
		switch {
		case a.Kind == operator.ActAgain && r.Reason == operator.ReasonComplete && r.Execution == 0:
			h.label = "the same again"
		case a.Kind == operator.ActRedrive && r.Reason == operator.ReasonWhichStep:
			h.label = "one of them"
		case a.Kind == operator.ActRedrive && r.Reason == operator.ReasonRedrive:
			h.label = "go on"
		}
		list = append(list, h)
	}
	return hintLines(list)
}

// actionHint words an action of the service.
func (env *environment) actionHint(a operator.Action) hint {
	id := idText(a.Execution)
	switch a.Kind {
	case operator.ActShow:
		if a.Status.IsRunning() {
			return hint{"what it does", env.command("show", id)}
		}
		return hint{"what it did", env.command("show", id)}
	case operator.ActHistory:
		if a.Job == "" {
			return hint{"those there are", env.command("list")}
		}
		return hint{"its history", env.command("list", "--job", a.Job)}
	case operator.ActExplain:
		return hint{"why, and what then", env.command("explain", id)}
	case operator.ActWatch:
		return hint{"watch it", env.command("top", "--job", a.Job)}
	case operator.ActSkips:
		return hint{"its skipped items", env.command("skips", "list", id)}
	case operator.ActExport:
		return hint{"give the items", env.command("skips", "export", id, "--out", "FILE") + ", give their item, and add --from FILE"}
	case operator.ActCompare:
		return hint{"compare", env.compareLine(a)}
	case operator.ActHelp:
		return hint{"parameters", env.app.Name + " run " + shellQuote(a.File) + " --help"}
	case operator.ActIncrementer:
		return hint{"give it one", "incrementer: NAME  (in " + a.File + ")"}
	case operator.ActMigrate:
		return hint{"make or update it", env.command("migrate")}
	case operator.ActRun, operator.ActAgain, operator.ActNext, operator.ActRestart, operator.ActRedrive, operator.ActStop, operator.ActAbandon, operator.ActRecover:
	}
	return env.changeHint(a, id)
}

// changeHint words an action that changes something.
func (env *environment) changeHint(a operator.Action, id string) hint {
	switch a.Kind {
	case operator.ActRun:
		return hint{"another instance", env.command(runWords(a.File, givenWords(a.Params))...)}
	case operator.ActAgain:
		return hint{"a new instance", env.command(runWords(a.File, givenWords(a.Params), "--again")...)}
	case operator.ActNext:
		return hint{"the next one", env.command("next", a.File)}
	case operator.ActRestart:
		return hint{restartLabel(a), env.command(actionWords([]string{"restart", id}, a)...)}
	case operator.ActRedrive:
		return hint{fileLabel(a, "redrive it"), env.command(actionWords([]string{"skips", "redrive", id}, a)...)}
	case operator.ActStop:
		return hint{"stop it", env.command("stop", id, "--wait", "5m")}
	case operator.ActAbandon:
		return hint{"give it up", env.command("abandon", id) + "   (once you have looked)"}
	case operator.ActRecover:
		if a.Owner != nil && a.Owner.Dead {
			return hint{"its process is dead; end it", env.command("recover")}
		}
		return hint{"if its process is gone", env.command("recover")}
	default:
		return hint{string(a.Kind), env.command("show", id)}
	}
}

func restartLabel(a operator.Action) string {
	switch {
	case a.AcceptChanges:
		return "go on anyway"
	case a.FromStart:
		return "all of it anew"
	}
	return fileLabel(a, "restart it")
}

func fileLabel(a operator.Action, label string) string {
	if a.NeedsFile {
		return "another file"
	}
	return label
}

// actionWords adds the flags of an action to a command.
func actionWords(words []string, a operator.Action) []string {
	if a.Step != "" {
		words = append(words, "--step", a.Step)
	}
	switch {
	case a.NeedsFile:
		words = append(words, "--file", "FILE")
	case a.File != "":
		words = append(words, "--file", a.File)
	}
	if a.AcceptChanges {
		words = append(words, "--accept-changes")
	}
	if a.FromStart {
		words = append(words, "--from-start")
	}
	return words
}

func (env *environment) compareLine(a operator.Action) string {
	return env.command("show", idText(a.Execution), "--definition") + " | diff - " + shellQuote(a.File)
}

// refusal is the command's end where the service refused.
func (env *environment) refusal(err error) error {
	var r *operator.Refusal
	if !errors.As(err, &r) {
		return err
	}
	err = r.Err
	switch r.Reason { //nolint:exhaustive // the others are said as they are
	case operator.ReasonNotFound:
		err = fmt.Errorf("there is no execution %d in %s", r.Execution, env.databaseText(env.settings.Repository.Database))
	case operator.ReasonChanged:
		err = changedText(r)
	case operator.ReasonSchema:
		err = fmt.Errorf("%s: %w", env.databaseText(env.settings.Repository.Database), err)
	}
	return &exitError{code: refusalCode(r), err: err, hints: env.actionHints(r)}
}

// changedText is a refusal because the job file has changed, a line for each change.
func changedText(r *operator.Refusal) error {
	lines := []error{fmt.Errorf("the job file has changed since execution %d in what a restart relies on", r.Last)}
	for _, line := range r.Details {
		lines = append(lines, errors.New(line))
	}
	return errors.Join(lines...)
}

func refusalCode(r *operator.Refusal) int {
	switch r.Reason {
	case operator.ReasonNotFound, operator.ReasonNoSuchJob, operator.ReasonFile, operator.ReasonParameters, operator.ReasonChanged,
		operator.ReasonRedrive, operator.ReasonWhichStep, operator.ReasonItems:
		return ExitUsage
	case operator.ReasonOver, operator.ReasonNoIncrementer, operator.ReasonSchema:
		return ExitFailed
	case operator.ReasonComplete, operator.ReasonAbandoned, operator.ReasonUnknown, operator.ReasonIllegalState:
		if r.Execution != 0 { // the execution that was named is in a status that the command is not for
			return ExitFailed
		}
	case operator.ReasonRunning, operator.ReasonNotRestartable, operator.ReasonStartLimit, operator.ReasonNotNewest, operator.ReasonNothingSkipped:
	}
	return ExitRefused
}

func runWords(path string, parameters []string, flags ...string) []string {
	return slices.Concat([]string{"run", path}, parameters, flags)
}

// givenWords writes NAME=VALUE as it was given, sorted by name.
func givenWords(given map[string]string) []string {
	var words []string
	for _, name := range sortedKeys(given) {
		words = append(words, name+"="+given[name])
	}
	return words
}

// hintText writes ways out below a result.
func hintText(hints []string) string {
	var b strings.Builder
	for _, h := range hints {
		b.WriteString("  " + h + "\n")
	}
	return b.String()
}
