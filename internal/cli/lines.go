package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type hint struct{ label, text string }

// maxLabel is the width of a label beyond which the others are not aligned to it.
const maxLabel = 16

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

func (env *environment) actionHints(r *operator.Refusal) []string {
	var list []hint
	for _, a := range r.Actions {
		h := env.actionHint(a)
		switch {
		case a.Kind == refusal.ActAgain && r.Reason == refusal.Complete && r.Execution == 0:
			h.label = "the same again"
		case a.Kind == refusal.ActRedrive && r.Reason == refusal.WhichStep:
			h.label = "one of them"
		case a.Kind == refusal.ActRedrive && r.Reason == refusal.Redrive:
			h.label = "continue"
		}
		list = append(list, h)
	}
	return hintLines(list)
}

type actionText struct {
	label     string   // among hints
	explained string   // in an explanation; empty if explanations do not have the action
	words     []string // the command
	flags     []string // of the command in a hint
	note      string   // after the command in a hint
	line      string   // replaces words, if it is not a command of this program
}

func (env *environment) actionHint(a operator.Action) hint {
	t := env.actionText(a)
	if t.line != "" {
		return hint{t.label, t.line}
	}
	return hint{t.label, env.command(slices.Concat(t.words, t.flags)...) + t.note}
}

// actionText returns the words of a read-only action, else of changeText.
func (env *environment) actionText(a operator.Action) actionText {
	id := idText(a.Execution)
	switch a.Kind {
	case refusal.ActShow:
		if a.Status.IsRunning() {
			return actionText{label: "its state", words: []string{"show", id}}
		}
		return actionText{label: "its result", words: []string{"show", id}}
	case refusal.ActHistory:
		if a.Job == "" {
			return actionText{label: "list them", words: []string{"list"}}
		}
		return actionText{label: "its history", words: []string{"list", "--job", a.Job}}
	case refusal.ActExplain:
		return actionText{label: "explain it", explained: "explain that one", words: []string{"explain", id}}
	case refusal.ActWatch:
		return actionText{label: "watch it", explained: "watch it", words: []string{"top", "--job", a.Job}}
	case refusal.ActSkips:
		return actionText{label: "its skipped items", explained: "see what was skipped", words: []string{"skips", "list", id}}
	case refusal.ActExport:
		return actionText{
			label: "correct the items", explained: "correct the items", words: []string{"skips", "export", id, "--out", "FILE"},
			note: ", correct the items, then redrive with --from FILE",
		}
	case refusal.ActCompare:
		return actionText{label: "compare", explained: "see what changed", line: env.compareLine(a)}
	case refusal.ActHelp:
		return actionText{label: "parameters", line: env.app.Name + " run " + shellQuote(a.File) + " --help"}
	case refusal.ActIncrementer:
		return actionText{label: "add one", line: "incrementer: NAME  (in " + a.File + ")"}
	case refusal.ActMigrate:
		return actionText{label: "create or update it", words: []string{"migrate"}}
	case refusal.ActRun, refusal.ActAgain, refusal.ActNext, refusal.ActRestart, refusal.ActRedrive, refusal.ActStop, refusal.ActAbandon, refusal.ActRecover,
		refusal.ActWork:
	}
	return env.changeText(a, id)
}

func (env *environment) changeText(a operator.Action, id string) actionText {
	switch a.Kind {
	case refusal.ActRun:
		return actionText{label: "another instance", explained: "run another instance", words: runWords(a.File, env.givenWords(a))}
	case refusal.ActAgain:
		return actionText{label: "a new instance", explained: "run the same again", words: runWords(a.File, env.givenWords(a), "--again")}
	case refusal.ActNext:
		return actionText{label: "next instance", words: []string{"next", a.File}}
	case refusal.ActRestart:
		words := []string{"restart", id}
		if env.repeat != nil {
			words, a.NeedsFile, a.File = slices.Clone(env.repeat), false, ""
		}
		return actionText{label: restartLabel(a), explained: restartExplained(a), words: actionWords(words, a)}
	case refusal.ActRedrive:
		return actionText{label: fileLabel(a, "redrive it"), explained: "redrive it", words: actionWords([]string{"skips", "redrive", id}, a)}
	case refusal.ActStop:
		return actionText{label: "stop it", explained: "stop it", words: []string{"stop", id}, flags: []string{"--wait", "5m"}}
	case refusal.ActAbandon:
		return actionText{label: "abandon it", explained: "abandon it", words: []string{"abandon", id}, note: "   (after checking its data)"}
	case refusal.ActRecover:
		t := actionText{label: "if its process died", explained: "end it", words: []string{"recover"}}
		if a.Owner != nil && a.Owner.Dead {
			t.label = "its process is dead; end it"
		}
		return t
	case refusal.ActWork:
		return workText(a.Open)
	default:
		return actionText{label: string(a.Kind), words: []string{"show", id}}
	}
}

func workText(open core.OpenWork) actionText {
	var of []string
	for _, kind := range []struct {
		n    int64
		name string
	}{{open.Parts, "parts"}, {open.Tasks, "tasks"}, {open.Children, "child jobs"}} {
		if kind.n > 0 {
			of = append(of, kind.name)
		}
	}
	t := actionText{label: "continue it", explained: "continue it", words: []string{"worker"}}
	if len(of) > 0 {
		t.label = "run its " + andWords(of)
		t.explained = t.label + ", and continue it"
	}
	return t
}

// noWorkerText reports that no worker continues a parked execution; empty if one would, or it is
// unknown.
func (env *environment) noWorkerText(w *operator.Waiting) string {
	if !w.NoWorker() {
		return ""
	}
	return fmt.Sprintf("no live worker of engine %s: start `%s`", w.Engine, env.command("worker"))
}

func restartLabel(a operator.Action) string {
	switch {
	case a.AcceptChanges:
		return "continue anyway"
	case a.FromStart:
		return "from the start"
	case a.IfComplete:
		return "run it from there again"
	case a.From != "":
		return "from " + a.From
	}
	return fileLabel(a, "restart it")
}

func restartExplained(a operator.Action) string {
	switch {
	case a.AcceptChanges:
		return "restart it anyway"
	case a.FromStart:
		return "restart it from the start"
	case a.From != "":
		return "restart it from " + a.From
	}
	return "restart it"
}

func fileLabel(a operator.Action, label string) string {
	if a.NeedsFile {
		return "another file"
	}
	return label
}

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
	if a.From != "" {
		words = append(words, "--from", a.From)
	}
	if a.IfComplete {
		words = append(words, "--if-complete")
	}
	return words
}

func (env *environment) compareLine(a operator.Action) string {
	words := []string{"show", idText(a.Execution), "--definition"}
	if a.Name != "" {
		words = append(words, "--file", a.Name)
	}
	return env.command(words...) + " | diff - " + shellQuote(a.File)
}

func (env *environment) refusal(err error) error {
	var r *operator.Refusal
	if !errors.As(err, &r) {
		return err
	}
	err = r.Err
	switch r.Reason { //nolint:exhaustive // the others are said as they are
	case refusal.NotFound:
		err = fmt.Errorf("no execution %d in %s", r.Execution, env.databaseText(env.settings.Repository.Database))
	case refusal.Changed:
		err = changedText(r)
	case refusal.Schema:
		err = fmt.Errorf("%s: %w", env.databaseText(env.settings.Repository.Database), err)
	}
	return &exitError{code: operator.ExitCode(r), err: err, hints: append(diffLines(r.Diff), env.actionHints(r)...)}
}

// changedText is the refusal of a changed job file, with a line for each change.
func changedText(r *operator.Refusal) error {
	lines := []error{fmt.Errorf("the job file has changed since execution %d in what committed work depends on", r.Last)}
	if changed, is := errors.AsType[*jobfile.ChangedError](r.Err); is {
		lines[0] = errors.New(changed.Summary(r.Last))
	}
	for _, line := range r.Details {
		lines = append(lines, errors.New(line))
	}
	return errors.Join(lines...)
}

func diffLines(diff string) []string {
	if diff == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
}

func runWords(path string, parameters []string, flags ...string) []string {
	return slices.Concat([]string{"run", path}, parameters, flags)
}

// givenWords formats NAME=VALUE as it can be given in the working directory, sorted by name.
func (env *environment) givenWords(a operator.Action) []string {
	var words []string
	for _, name := range sortedKeys(a.Params) {
		value := a.Params[name]
		if slices.Contains(a.Paths, name) {
			value = env.shortPath(value)
		}
		words = append(words, name+"="+value)
	}
	return words
}

// shortPath returns a path relative to the working directory, if it lies in it.
func (env *environment) shortPath(path string) string {
	if rel, err := filepath.Rel(env.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func hintText(hints []string) string {
	var b strings.Builder
	for _, h := range hints {
		b.WriteString("  " + h + "\n")
	}
	return b.String()
}
