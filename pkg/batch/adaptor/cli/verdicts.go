package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// verdict is what a decision, or the condition of an element, was answered with, or
// where the job stopped: what a restart keeps.
type verdict struct{ kind, element, text string }

// verdicts reads them from the job's context.
func verdicts(c *core.ExecutionContext) []verdict {
	if c == nil {
		return nil
	}
	var list []verdict
	for _, key := range c.Keys() {
		value, _ := c.Get(key)
		text, isText := value.(string)
		if !isText {
			continue
		}
		_, answer, _ := strings.Cut(text, " ") // before it is the step that it followed
		if name, ok := strings.CutPrefix(key, decidedKey); ok {
			list = append(list, verdict{"decide", name, answer})
		}
		if name, ok := strings.CutPrefix(key, whenKey); ok {
			list = append(list, verdict{"when", name, answer})
		}
	}
	return list
}

func verdictTable(list []verdict) string {
	var rows [][]string
	for _, v := range list {
		rows = append(rows, []string{v.kind, v.element, v.text})
	}
	return renderTable([]column{{title: "decided"}, {title: "element"}, {title: "verdict"}}, rows)
}

type decisionRecord struct {
	Kind    string `json:"kind"` // decide or when
	Element string `json:"element"`
	Verdict string `json:"verdict"`
}

type auditRecord struct {
	At     *time.Time `json:"at"`
	Act    string     `json:"act"`
	Actor  string     `json:"actor,omitempty"`
	Step   int64      `json:"step,omitempty"`
	From   string     `json:"from,omitempty"`
	To     string     `json:"to,omitempty"`
	Epoch  int64      `json:"epoch,omitempty"`
	Detail string     `json:"detail,omitempty"`
}

// auditTable is what happened, in order.
func auditTable(entries []core.AuditEntry, steps []core.StepExecution, parts map[core.StepExecutionID]partitions) string {
	names := map[core.StepExecutionID]string{}
	for _, s := range steps {
		names[s.ID] = s.Name
	}
	for _, ps := range parts {
		for _, s := range ps.list {
			names[s.ID] = s.Name
		}
	}
	var rows [][]string
	for _, a := range entries {
		subject := "job"
		if a.Step != 0 {
			if subject = names[a.Step]; subject == "" {
				subject = fmt.Sprintf("step execution %d", a.Step)
			}
		}
		rows = append(rows, []string{a.At.UTC().Format("2006-01-02 15:04:05.000Z"), subject, a.Act, moveText(a.From, a.To), actorText(a.Actor), clip(oneLine(a.Detail), 80)})
	}
	return renderTable([]column{{title: "at"}, {title: "about"}, {title: "act"}, {title: "status"}, {title: "by"}, {title: "detail"}}, rows)
}

// actorText names a process as people do; a person is named already.
func actorText(actor string) string {
	if o := core.ParseOwner(actor); o.PID > 0 {
		return fmt.Sprintf("process %d on %s", o.PID, o.Host)
	}
	return actor
}

func moveText(from, to core.Status) string {
	switch {
	case from == "" && to == "":
		return "-"
	case from == "" || from == to:
		return string(to)
	}
	return string(from) + " -> " + string(to)
}
