package rules_test

import "strings"

// stages are the rooms of a job file's way from a text to a job: each knows only those before it.
func stages() []room {
	core, tx, ours, model, ports := "pkg/batch/core/...", "pkg/batch/tx/...", helpers, "internal/model", "internal/ports/..."
	steps := []string{core, tx, model, ports, "pkg/batch/chunk/...", "internal/redrive", "internal/job/..."}
	return []room{
		{path: "internal/jobfile/source", may: []string{core, ours}},
		{path: "internal/jobfile/language", may: []string{core, tx, ours}},
		{path: "internal/jobfile/template", may: []string{core, ours}},
		{path: "internal/jobfile/docs", may: language("language", core, ours)},
		{path: "internal/jobfile/itemtype", may: language("language", core, "internal/schedule", ours)},
		{path: "internal/jobfile/expand", may: language("source language template", core, ours)},
		{path: "internal/jobfile/tree", may: language("source language template itemtype", model, ports, core, tx, "internal/job", "internal/schedule", ours)},
		{path: "internal/jobfile/outline", may: language("language tree", model, core, ours)},
		{path: "internal/jobfile/bind", may: language("language template itemtype tree", core, tx, ours)},
		{path: "internal/jobfile/check", may: language("source language template itemtype expand tree bind", model, ports, core, tx, "internal/job", "internal/schedule", ours)},
		{path: "internal/jobfile/diff", may: language("language template tree bind check", ports, core, tx, ours)},
		{path: "internal/jobfile/compile", may: language("language template tree bind diff", append(steps, "pkg/batch/step", ours)...)},
		{path: "internal/jobfile/...", may: append(steps, "pkg/batch/step/...", "internal/schedule", "internal/jobfile/...", ours)},
	}
}

func language(names string, more ...string) []string {
	for _, name := range strings.Fields(names) {
		more = append(more, "internal/jobfile/"+name)
	}
	return more
}
