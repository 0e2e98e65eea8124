package cli

import (
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

func decisionTable(list []operator.DecisionView) string {
	var rows [][]string
	for _, d := range list {
		rows = append(rows, []string{d.Kind, d.Element, d.Verdict})
	}
	return renderTable([]column{{title: "decided"}, {title: "element"}, {title: "verdict"}}, rows)
}

func auditTable(entries []operator.AuditView) string {
	var rows [][]string
	for i := range entries {
		a := &entries[i]
		rows = append(rows, []string{a.At.Format("2006-01-02 15:04:05.000Z"), wording.About(a), a.Act, wording.Move(a.From, a.To), wording.Actor(a.Actor), humanize.Clip(humanize.OneLine(wording.ActDetail(a.Detail)), 80)})
	}
	return renderTable([]column{{title: "at"}, {title: "about"}, {title: "act"}, {title: "status"}, {title: "by"}, {title: "detail"}}, rows)
}
