package console

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile/outline"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type definitionView struct {
	head
	Files []fileView
	// Change is how the file differs now.
	Change  string
	Changes []string
	Gates   []operator.Gate
	Problem string
}

type fileView struct {
	Name, Path string
	Lines      []codeLine
	// Download is empty for a file as it is now.
	Download string
	Cut      string
}

type codeLine struct {
	Number int
	Text   string
	// Class marks lines of an element, Notes stand after it.
	Class string
	Notes []string
	// Target is the line that a link leads to.
	Target bool
}

func (v ofExecution) definition() (*page, error) {
	shown, h, err := v.tab("definition", operator.ShowRequest{Definition: true})
	if err != nil {
		return nil, err
	}
	flow, err := v.Service.ExecutionFlow(v.r.Context(), shown.ID)
	if err != nil {
		return nil, err
	}
	explained, err := v.Service.Explain(v.r.Context(), operator.ExplainRequest{Execution: shown.ID})
	if err != nil {
		return nil, err
	}
	view := definitionView{head: h, Gates: explained.Gates, Problem: v.masked(flow.Problem)}
	switch explained.FileChange {
	case operator.FileGone:
		view.Change = "The job file no longer exists."
	case operator.FileChanged:
		view.Change = "The job file has changed since."
	}
	for _, c := range explained.Changes {
		view.Changes = append(view.Changes, v.masked(c.String()))
	}
	places := map[string]*outline.Element{}
	collect(places, flow.Flow)
	collect(places, flow.Finally)
	for _, f := range shown.Definition {
		file := v.file(f, v.marks(places, shown.Steps))
		file.Download = v.executionLink(shown.ID).Href + "/definition.txt?file=" + query(f.Name)
		view.Files = append(view.Files, file)
	}
	return tabPage(shown, "definition", view), nil
}

func collect(places map[string]*outline.Element, list []outline.Element) {
	for i := range list {
		places[list[i].Name] = &list[i]
		for _, inner := range list[i].Flows {
			collect(places, inner)
		}
	}
}

// mark is a remark on lines of a file.
type mark struct {
	file        string
	first, last int
	class       string
	notes       []string
	target      bool
}

// marks are the elements that failed, with their errors, and the selected one.
func (v ofExecution) marks(places map[string]*outline.Element, steps []operator.StepView) []mark {
	var list []mark
	selected := v.text("element")
	for i := range steps {
		s := &steps[i]
		at := places[elementOf(s)]
		if at == nil || at.Place.Line == 0 {
			continue
		}
		m := mark{file: at.Place.File, first: at.Place.Line, last: at.Place.LastLine}
		if s.Status == core.StatusFailed || s.Status == core.StatusUnknown {
			m.class = "failed"
			m.notes = append(m.notes, "step "+s.Step+" "+wording.StatusAndExit(s.Status, s.Exit)+": "+clip(v.masked(s.Error), lineText))
		}
		if s.Gate != "" {
			m.notes = append(m.notes, "gate: "+clip(v.masked(s.Gate), lineText))
		}
		if len(m.notes) > 0 {
			list = append(list, m)
		}
	}
	if at := places[selected]; at != nil && at.Place.Line > 0 {
		list = append(list, mark{file: at.Place.File, first: at.Place.Line, last: at.Place.LastLine, class: "selected", target: true})
	} else if selected != "" {
		v.mistake("element", selected, "this definition has no such element")
	}
	return list
}

func (v *visit) file(f core.DefinitionFile, marks []mark) fileView {
	const longest = 5000
	view := fileView{Name: clip(f.Name, lineText), Path: clip(f.Path, lineText)}
	if view.Name == view.Path {
		view.Path = ""
	}
	lines := strings.Split(strings.TrimSuffix(v.masked(f.Text), "\n"), "\n")
	if len(lines) > longest {
		view.Cut = fmt.Sprintf("%d of %d lines are shown", longest, len(lines))
		lines = lines[:longest]
	}
	for i, text := range lines {
		const widest = 2000
		l := codeLine{Number: i + 1, Text: cutLine(whole(text), widest)}
		for _, m := range marks {
			if !isFile(m.file, f) || l.Number < m.first || l.Number > max(m.first, m.last) {
				continue
			}
			l.Class = strings.TrimSpace(l.Class + " " + m.class)
			if l.Number == m.first {
				l.Notes, l.Target = append(l.Notes, m.notes...), l.Target || m.target
			}
		}
		view.Lines = append(view.Lines, l)
	}
	return view
}

func isFile(name string, f core.DefinitionFile) bool {
	return name == "" || name == f.Path || name == f.Name || filepath.Base(name) == filepath.Base(f.Name)
}

// cutText is cutLine for a text that a download has as a whole.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return cutLine(text, most) + " (cut: it has " + humanize.Count(len(text)) + " bytes, and the download all of them)"
}

func cutLine(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
