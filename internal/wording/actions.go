package wording

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Hint is a next thing to do, after a label.
type Hint struct{ Label, Text string }

// Commands writes command lines for people to copy.
type Commands struct {
	Program string
	Flags   []string // that select the database
	Dir     string   // paths in it are relative
	// Repeat restarts the work it ran; nil means by the execution's number.
	Repeat []string
}

// Line returns the command line of the words.
func (c Commands) Line(words ...string) string {
	all := slices.Concat([]string{c.Program}, words, c.Flags)
	for i, w := range all {
		all[i] = humanize.Quote(w)
	}
	return strings.Join(all, " ")
}

const maxLabel = 16

// HintLines formats hints, with their texts aligned.
func HintLines(list []Hint) []string {
	width := 0
	for _, h := range list {
		if len(h.Label) <= maxLabel {
			width = max(width, len(h.Label))
		}
	}
	lines := make([]string, len(list))
	for i, h := range list {
		lines[i] = fmt.Sprintf("%-*s  %s", width+1, h.Label+":", h.Text)
	}
	return lines
}

// Refusal returns the hints after a refusal.
func (c Commands) Refusal(r *operator.Refusal) []string {
	var list []Hint
	for _, a := range r.Actions {
		h := c.Hint(a)
		switch {
		case a.Kind == refusal.ActAgain && r.Reason == refusal.Complete && r.Execution == 0:
			h.Label = "the same again"
		case a.Kind == refusal.ActRedrive && r.Reason == refusal.WhichStep:
			h.Label = "one of them"
		case a.Kind == refusal.ActRedrive && r.Reason == refusal.Redrive:
			h.Label = "continue"
		}
		list = append(list, h)
	}
	return HintLines(list)
}

// NextHints returns the hints after an execution.
func (c Commands) NextHints(actions []operator.Action) []Hint {
	var list []Hint
	for _, a := range actions {
		h := c.Hint(a)
		if a.Kind == refusal.ActRedrive {
			h.Label = "restart it"
		}
		list = append(list, h)
	}
	return list
}

func cure(a operator.Action) string {
	switch {
	case a.Name != "":
		return "correct " + a.Name + ", or let step " + a.Step + " skip such items; without that it fails there again"
	case a.Step != "":
		return "see the error of step " + a.Step
	}
	return "see its error"
}

// CommandLine is a command and its purpose.
type CommandLine struct {
	// Order is the position of a thing to do in turn, from 1; 0 for others.
	Order   int    `json:"order,omitempty"`
	To      string `json:"to"`
	Command string `json:"command,omitempty"`
	// Text replaces Command if no command does it.
	Text string `json:"text,omitempty"`
	// Action is empty if the command only shows more.
	Action operator.Action `json:"-"`
}

// Explained returns the commands that an explanation names.
func (c Commands) Explained(e *operator.Explanation) []CommandLine {
	lines := []CommandLine{}
	for _, a := range e.Actions {
		t := c.action(a)
		if t.explained == "" {
			continue
		}
		if a.Kind == refusal.ActRedrive && a.Execution == e.RedriveOf {
			t.explained = "restart it"
		}
		if t.line == "" {
			t.line = c.Line(t.words...)
		}
		l := CommandLine{To: t.explained, Command: t.line, Action: a}
		if a.Kind == refusal.ActCure {
			l.Command, l.Text = "", t.line
		}
		lines = append(lines, l)
	}
	inTurn(lines, e.RedriveOf)
	if slices.ContainsFunc(e.Steps, func(s operator.StepView) bool { return s.Partitions != nil && omitsPartitions(s.Partitions) }) {
		lines = append(lines, CommandLine{To: "all partitions", Command: c.Line("show", ID(e.Execution), "--partitions")})
	}
	return lines
}

// inTurn numbers the steps to a complete execution, if there is more than the restart.
func inTurn(lines []CommandLine, of core.JobExecutionID) {
	n := 0
	restarts := false
	numbered := func(a operator.Action) bool {
		restart := a.Kind == refusal.ActRestart || a.Kind == refusal.ActRedrive && of != 0
		restarts = restarts || restart
		return restart || a.Kind == refusal.ActCure || a.Kind == refusal.ActExport || a.Kind == refusal.ActRedrive
	}
	for i := range lines {
		if numbered(lines[i].Action) {
			n++
			lines[i].Order = n
		}
	}
	if n < 2 || !restarts {
		for i := range lines {
			lines[i].Order = 0
		}
	}
}

func omitsPartitions(ps *operator.PartitionsView) bool {
	return ps.Total-ps.Statuses[core.StatusCompleted] > humanize.MaxNames
}

type actionText struct {
	label     string   // among hints
	explained string   // in an explanation; empty if explanations do not have the action
	words     []string // the command
	flags     []string // of the command in a hint
	note      string   // after the command in a hint
	line      string   // replaces words, if it is not a command of this program
}

// Hint returns the command of an action, as a hint.
func (c Commands) Hint(a operator.Action) Hint {
	t := c.action(a)
	if t.line != "" {
		return Hint{t.label, t.line}
	}
	return Hint{t.label, c.Line(slices.Concat(t.words, t.flags)...) + t.note}
}

func (c Commands) action(a operator.Action) actionText {
	id := ID(a.Execution)
	switch a.Kind {
	case refusal.ActShow:
		if a.Status.IsRunning() {
			return actionText{label: "its progress", words: []string{"show", id}}
		}
		return actionText{label: "its steps", words: []string{"show", id}}
	case refusal.ActHistory:
		if a.Job == "" {
			return actionText{label: "all executions", words: []string{"list"}}
		}
		return actionText{label: "its history", words: []string{"list", "--job", a.Job}}
	case refusal.ActExplain:
		return actionText{label: "why, and what next", explained: "explain that one", words: []string{"explain", id}}
	case refusal.ActWatch:
		return actionText{label: "watch it", explained: "watch it", words: []string{"top", "--job", a.Job}}
	case refusal.ActSkips:
		return actionText{label: "its skipped items", explained: "see the skipped items", words: []string{"skips", "list", id}}
	case refusal.ActExport:
		return actionText{
			label: "give the items", explained: "correct the items", words: []string{"skips", "export", id, "--out", "FILE"},
			note: ", give their item, and add --from FILE",
		}
	case refusal.ActCure:
		return actionText{label: "remove the cause", explained: "remove the cause", line: cure(a)}
	case refusal.ActCompare:
		return actionText{label: "compare", explained: "see what changed", line: c.Compare(a)}
	case refusal.ActHelp:
		return actionText{label: "parameters", line: c.Program + " run " + humanize.Quote(a.File) + " --help"}
	case refusal.ActIncrementer:
		return actionText{label: "give it one", line: "incrementer: NAME  (in " + a.File + ")"}
	case refusal.ActMigrate:
		return actionText{label: "create or update it", words: []string{"migrate"}}
	case refusal.ActValidate, refusal.ActRegister, refusal.ActSchedules, refusal.ActWorkers, refusal.ActEvents:
		return c.server(a)
	case refusal.ActRun, refusal.ActAgain, refusal.ActNext, refusal.ActRestart, refusal.ActRedrive, refusal.ActStop, refusal.ActAbandon, refusal.ActRecover,
		refusal.ActWork:
	}
	return c.change(a, id)
}

func (c Commands) server(a operator.Action) actionText {
	switch a.Kind {
	case refusal.ActValidate:
		return actionText{label: "check it", words: []string{"validate", a.File}}
	case refusal.ActRegister:
		if a.Job != "" {
			return actionText{label: "register it", words: []string{"register", a.File}}
		}
		return actionText{label: "after a correction", words: []string{"register", a.File}}
	case refusal.ActWorkers:
		return actionText{label: "the workers", words: []string{"tasks", "workers"}}
	case refusal.ActEvents:
		return actionText{label: "the events", words: []string{"events", "list", "--topic", a.Name}}
	default:
		return actionText{label: "its times", words: []string{"schedules"}}
	}
}

func (c Commands) change(a operator.Action, id string) actionText {
	switch a.Kind {
	case refusal.ActRun:
		return actionText{label: "another instance", explained: "run another instance", words: runWords(a.File, c.given(a))}
	case refusal.ActAgain:
		return actionText{label: "a new instance", explained: "run the same again", words: runWords(a.File, c.given(a), "--again")}
	case refusal.ActNext:
		return actionText{label: "the next one", words: []string{"next", a.File}}
	case refusal.ActRestart:
		words := []string{"restart", id}
		if c.Repeat != nil {
			words, a.NeedsFile, a.File = slices.Clone(c.Repeat), false, ""
		}
		return actionText{label: restartLabel(a), explained: restartExplained(a), words: actionWords(words, a)}
	case refusal.ActRedrive:
		return actionText{label: fileLabel(a, "redrive it"), explained: "redrive it", words: actionWords([]string{"skips", "redrive", id}, a)}
	case refusal.ActStop:
		return actionText{label: "stop it", explained: "stop it", words: []string{"stop", id}, flags: []string{"--wait", "5m"}}
	case refusal.ActAbandon:
		return actionText{label: "abandon it", explained: "abandon it", words: []string{"abandon", id}, note: "   (after checking what it wrote)"}
	case refusal.ActRecover:
		t := actionText{label: "if its process is gone", explained: "end it", words: []string{"recover"}}
		if a.Owner != nil && a.Owner.Dead {
			t.label = "its process is dead; end it"
		}
		return t
	case refusal.ActWork:
		if a.Execution == 0 {
			return actionText{label: "start one", words: []string{"worker"}}
		}
		return workText(a.Open)
	default:
		return actionText{label: string(a.Kind), words: []string{"show", id}}
	}
}

func workText(open ports.OpenWork) actionText {
	var of []string
	for _, kind := range []struct {
		n    int64
		name string
	}{{open.Parts, "partitions"}, {open.Tasks, "tasks"}, {open.Children, "child jobs"}} {
		if kind.n > 0 {
			of = append(of, kind.name)
		}
	}
	t := actionText{label: "continue it", explained: "continue it", words: []string{"worker"}}
	if len(of) > 0 {
		t.label = "run its " + humanize.And(of)
		t.explained = t.label + ", and continue it"
	}
	return t
}

// NoWorker reports that no worker continues a parked execution, or "".
func (c Commands) NoWorker(w *operator.Waiting) string {
	if !w.NoWorker() {
		return ""
	}
	return fmt.Sprintf("no live worker of engine %s: start `%s`", w.Engine, c.Line("worker"))
}

// Parked describes a parked execution's open work, and whether no worker does
// it.
func (c Commands) Parked(w *operator.Waiting) string {
	if w == nil {
		return ""
	}
	text := "it waits for a worker to continue it"
	if open := w.String(); open != "" {
		text = "it waits for " + open
	}
	if lacks := c.NoWorker(w); lacks != "" {
		text += "; " + lacks
	}
	return text
}

func restartLabel(a operator.Action) string {
	switch {
	case a.AcceptChanges:
		return "restart anyway"
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

// Compare returns the command that compares a job file with today's.
func (c Commands) Compare(a operator.Action) string {
	words := []string{"show", ID(a.Execution), "--definition"}
	if a.Name != "" {
		words = append(words, "--file", a.Name)
	}
	return c.Line(words...) + " | diff - " + humanize.Quote(a.File)
}

func runWords(path string, parameters []string, flags ...string) []string {
	return slices.Concat([]string{"run", path}, parameters, flags)
}

func (c Commands) given(a operator.Action) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		value := a.Params[name]
		if slices.Contains(a.Paths, name) {
			value = c.shortPath(value)
		}
		words = append(words, name+"="+value)
	}
	return words
}

func (c Commands) shortPath(path string) string {
	if rel, err := filepath.Rel(c.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
