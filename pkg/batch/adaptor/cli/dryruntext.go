package cli

import (
	"fmt"
	"path/filepath"
	"strings"
)

// rehearsalRecord is the JSON form of a dry run.
type rehearsalRecord struct {
	Job        string         `json:"job"`
	Parameters map[string]any `json:"parameters"`
	Sample     int            `json:"sample"`
	Steps      []*rehearsed   `json:"steps"`
	// Fails says that a step would fail.
	Fails bool `json:"fails"`
}

func (r *rehearsal) record() rehearsalRecord {
	record := rehearsalRecord{Job: r.job.Name, Parameters: map[string]any{}, Sample: r.n, Steps: r.steps, Fails: r.verdict() != nil}
	for _, q := range r.params.All() {
		record.Parameters[q.Name] = parameterRecord(q)
	}
	return record
}

// text is a dry run for people: a paragraph for each step.
func (r *rehearsal) text(p *program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Dry run of job %s", r.job.Name)
	if words := parameterText(r.params.All()); words != "" {
		b.WriteString(" (" + clip(words, 200) + ")")
	}
	b.WriteString(": nothing is written.\n")
	for _, s := range r.steps {
		b.WriteString("\n" + s.text(p))
	}
	return b.String()
}

// mostItem is how many characters of an item a line has; JSON has all of it.
const mostItem = 300

func (s *rehearsed) text(p *program) string {
	var b strings.Builder
	b.WriteString(s.headline() + "\n")
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if len(s.Partitions) > 0 {
		first := ""
		if s.Sampled && len(s.Partitions) > 1 {
			first = "; the items are of the first one"
		}
		line("%s: %s%s", plural(len(s.Partitions), "partition"), andWords(most(s.Partitions)), first)
	}
	for _, w := range s.Writers {
		line("writes to %s", w.text(p))
	}
	switch {
	case s.Waits != "":
		line("not sampled: %s", s.Waits)
	case s.Error != "":
		line("would fail: %s", s.Error)
	}
	if !s.Sampled {
		return b.String()
	}
	var rows [][]string
	for _, item := range s.Items {
		rows = append(rows, item.rows()...)
	}
	if len(rows) > 0 {
		b.WriteString(indent(renderTable([]column{{title: "item"}, {title: "outcome"}, {title: "content"}}, rows)))
	}
	line("%s", s.sumText())
	return b.String()
}

// headline is what the element is, in a line.
func (s *rehearsed) headline() string {
	text := fmt.Sprintf("Step %s (%s)", s.Step, s.Kind)
	switch {
	case s.Kind == "decision":
		text = "Decision " + s.Step + ": asked when the flow comes to it"
	case s.Kind == "split", s.Kind == "flow", s.Kind == "group":
		text = strings.ToUpper(s.Kind[:1]) + s.Kind[1:] + " " + s.Step + ": its steps follow"
	case s.Reader != nil:
		text += ": reads " + strings.TrimSpace(s.Reader.Component+" "+s.Reader.Target)
		if len(s.Processors) > 0 {
			text += ", then " + strings.Join(s.Processors, ", ")
		}
	case s.Component != "":
		text += ": would run " + s.Component
	default:
		text += ": would run"
	}
	if s.If != "" {
		text += ", if " + s.If
	}
	if s.Finally {
		text += ", in the end"
	}
	return text
}

func (e endRecord) text(p *program) string {
	text := strings.TrimSpace(e.Component + " " + e.Target)
	if len(e.Columns) > 0 {
		text += " (" + joinWords(e.Columns) + ")"
	}
	if e.Database != "" {
		text += " in " + p.databaseText(e.Database)
	}
	return text
}

// rows are the lines of an item: as it was read, then each change.
func (i itemRecord) rows() [][]string {
	read := string(i.Read)
	if i.Read == nil {
		read = i.Error
	}
	at := i
	if at.Path != "" {
		at.Path = filepath.Base(at.Path) // the whole path is above, with the reader
	}
	rows := [][]string{{at.place(), i.Outcome, clip(read, mostItem)}}
	for _, s := range i.changes() {
		rows = append(rows, []string{"", s.Processor, clip(string(s.Item), mostItem)})
	}
	if i.Error != "" && i.Read != nil {
		why := i.Phase
		if i.Class != "" {
			why += " (" + i.Class + ")"
		}
		text := i.Error
		if i.Outcome == outcomeUnknown {
			text = "the processor writes to the database, which a dry run does not let it: " + text
		}
		rows = append(rows, []string{"", why, clip(text, mostItem)})
	}
	return rows
}

func (s *rehearsed) sumText() string {
	if len(s.Items) == 0 {
		return "there is nothing to read"
	}
	text := fmt.Sprintf("%d read: %d written", s.Read, s.Written)
	for _, part := range []struct {
		n    int
		word string
	}{{s.Filtered, "filtered"}, {s.Skipped, "skipped"}, {s.Failed, "failed"}, {s.Unknown, "unknown"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	return text
}
