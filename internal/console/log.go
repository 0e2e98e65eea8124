package console

import (
	"errors"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

type logView struct {
	head
	Lines          []logLine
	Levels         []choice
	Form           map[string]string
	LeftOut        string
	Stored         string
	Earlier, Later string
	End            string
	// Download has all lines that the filters select.
	Download string
}

type logLine struct {
	Seq   string
	At    moment
	Level string
	Class string
	Where string
	Text  string
}

func (v ofExecution) log() (*page, error) {
	shown, h, err := v.tab("log", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	req := operator.LogRequest{Execution: shown.ID, Step: v.text("step"), Level: v.text("level"), Text: v.text("text"), After: v.key("after"), Before: v.key("before")}
	if req.After == 0 && v.text("after") == "" {
		req.After = operator.LogEnd
	}
	found, err := v.Service.Log(v.r.Context(), req)
	if wrong, is := errors.AsType[*operator.RequestError](err); is {
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		found, err = v.Service.Log(v.r.Context(), operator.LogRequest{Execution: shown.ID, After: operator.LogEnd})
	}
	if err != nil {
		return nil, err
	}
	view := logView{
		head: h, LeftOut: wording.LogLeftOut(found.LeftOut), Stored: humanize.Plural(int(found.Stored), "line") + ", " + humanize.Count(found.Bytes) + " bytes",
		Form: map[string]string{"step": v.text("step"), "text": v.text("text")}, End: v.with("after", "", "before", ""),
	}
	if found.Stored > 0 {
		view.Download = v.fileLink(found.Execution, "log.txt")
	}
	for _, level := range []string{"debug", "info", "warn", "error"} {
		view.Levels = append(view.Levels, choice{level, "", level == v.text("level")})
	}
	for i := range found.Lines {
		view.Lines = append(view.Lines, v.logLine(&found.Lines[i]))
	}
	if found.Previous != 0 {
		view.Earlier = v.with("before", strconv.FormatInt(found.Previous, 10), "after", "")
	}
	if found.More {
		view.Later = v.with("after", strconv.FormatInt(found.Next, 10), "before", "")
	}
	return tabPage(shown, "log", view), nil
}

func (v ofExecution) logLine(l *operator.LogLineView) logLine {
	const longest = 16 << 10
	where := l.Step
	if l.Part != "" {
		where += ":" + l.Part
	}
	class := ""
	switch {
	case len(l.Level) >= 5 && l.Level[:5] == "ERROR":
		class = "failed"
	case len(l.Level) >= 4 && l.Level[:4] == "WARN":
		class = "warn"
	}
	return logLine{strconv.FormatInt(l.Seq, 10), v.instant(l.At), l.Level, class, clip(where, shortText), cutText(whole(v.masked(wording.LogText(*l))), longest)}
}
