package console

import (
	"cmp"
	"errors"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type compareView struct {
	head
	With        []choice
	Given       string
	Sentence    string
	Differences []string
	Diff        []diffLine
	Steps       []comparedStep
	Others      []link
	// Problem is why there is nothing to compare with.
	Problem string
}

type diffLine struct{ Text, Class string }

type comparedStep struct {
	Name, Only                              string
	Read, Written, Filtered, Skipped, Speed string
	Took                                    string
}

func (v ofExecution) compare() (*page, error) {
	shown, h, err := v.tab("compare", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	with := cmp.Or(v.text("with"), operator.WithPrevious)
	view := compareView{head: h, Given: with}
	for _, word := range []string{operator.WithPrevious, operator.WithTypical} {
		view.With = append(view.With, choice{word, v.with("with", word), word == with})
	}
	c, err := v.Service.Compare(v.r.Context(), operator.CompareRequest{Execution: shown.ID, With: with})
	wrong, is := errors.AsType[*operator.RequestError](err)
	switch {
	case is && (with == operator.WithPrevious || with == operator.WithTypical):
		view.Problem = wrong.Reason
		return tabPage(shown, "compare", view), nil
	case is:
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		return tabPage(shown, "compare", view), nil
	case errors.Is(err, core.ErrNotFound):
		v.mistake("with", with, "there is no such execution")
		return tabPage(shown, "compare", view), nil
	case err != nil:
		return nil, err
	}
	view.Sentence = wording.Compared(c)
	for _, d := range wording.Differences(c) {
		view.Differences = append(view.Differences, clip(v.masked(d), lineText))
	}
	view.Diff = diffLines(v.masked(c.Diff))
	for _, other := range c.Typical {
		view.Others = append(view.Others, v.executionLink(other))
	}
	if c.With.ID != 0 {
		view.Others = append(view.Others, v.executionLink(c.With.ID))
	}
	for i := range c.Steps {
		view.Steps = append(view.Steps, comparedStepOf(&c.Steps[i]))
	}
	return tabPage(shown, "compare", view), nil
}

func comparedStepOf(s *operator.StepComparison) comparedStep {
	l := comparedStep{
		Name: clip(s.Step, shortText), Read: wording.Figure(s.Read), Written: wording.Figure(s.Written), Filtered: wording.Figure(s.Filtered),
		Skipped: wording.Figure(s.Skipped), Speed: wording.Figure(s.Rate), Took: wording.DurationFigure(s.Duration),
	}
	switch {
	case s.OnlyHere:
		l.Only = "only here"
	case s.OnlyThere:
		l.Only = "only there"
	}
	return l
}

func diffLines(diff string) []diffLine {
	var list []diffLine
	for _, text := range wording.DiffLines(diff) {
		class := ""
		switch {
		case text == "":
		case text[0] == '+':
			class = "added"
		case text[0] == '-':
			class = "removed"
		case text[0] == '@':
			class = "place"
		}
		list = append(list, diffLine{humanize.Clip(whole(text), 1000), class})
	}
	return list
}
