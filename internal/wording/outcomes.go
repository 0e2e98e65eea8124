package wording

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

type planWay struct {
	edge    operator.PlanEdge
	entries []operator.PlanEntry
	joins   []string
}

// laterSentence: "if copy completes, runs publish; if it fails, runs repair".
func laterSentence(all, later []operator.PlanEntry) string {
	var text []string
	before := ""
	for _, way := range planWays(later) {
		head := "depending on " + later[0].Text
		if way.edge.From != "" {
			head = edgeText(way.edge, before, isDecision(all, way.edge.From))
		}
		before = way.edge.From
		clauses := planClauses(way.entries)
		if len(way.joins) > 0 {
			clauses = append(clauses, "continues with "+humanize.And(way.joins))
		}
		text = append(text, head+", "+humanize.And(clauses))
	}
	return strings.Join(text, "; ")
}

func planWays(later []operator.PlanEntry) []*planWay {
	var ways []*planWay
	wayOf := map[string]*planWay{} // by element
	find := func(edge operator.PlanEdge) *planWay {
		if from := wayOf[edge.From]; from != nil && (edge.On == "" || edge.On == onSuccess) {
			return from
		}
		for _, way := range ways {
			if way.edge == edge {
				return way
			}
		}
		way := &planWay{edge: edge}
		ways = append(ways, way)
		return way
	}
	for _, e := range later {
		var way *planWay
		switch {
		case len(e.Via) > 0:
			way = find(e.Via[0])
		case len(ways) > 0:
			way = ways[len(ways)-1]
		default:
			way = find(operator.PlanEdge{})
		}
		way.entries = append(way.entries, e)
		if wayOf[e.Element] == nil && e.Action != operator.PlanStop {
			wayOf[e.Element] = way
		}
	}
	for _, e := range later {
		for _, edge := range e.Via[min(1, len(e.Via)):] {
			if way := find(edge); way != wayOf[e.Element] && !slices.Contains(way.joins, e.Element) {
				way.joins = append(way.joins, e.Element)
			}
		}
	}
	return ways
}

const onSuccess = "COMPLETED"

func edgeText(edge operator.PlanEdge, before string, isDecision bool) string {
	subject := edge.From
	if edge.From == before {
		subject = "it"
	}
	switch {
	case edge.OtherSuccess:
		return "if " + subject + " succeeds with another exit code than COMPLETED"
	case (edge.On == "*" || isDecision && edge.On == onSuccess) && subject == "it":
		return "otherwise"
	case edge.On == "" || edge.On == "*" || isDecision && edge.On == onSuccess:
		return "after " + subject
	case isDecision:
		return "if " + subject + " answers " + edge.On
	case edge.On == onSuccess:
		return "if " + subject + " completes"
	case edge.On == "FAILED":
		return "if " + subject + " fails"
	}
	return "if " + subject + " ends with " + edge.On
}

// Certainty explains on which outcome an entry depends; empty if it is certain,
// and comes once.
func Certainty(e operator.PlanEntry, all []operator.PlanEntry) string {
	var words []string
	for _, edge := range e.Via {
		words = append(words, edgeText(edge, "", isDecision(all, edge.From)))
	}
	text := strings.Join(humanize.Few(words, 0), ", or ")
	if e.Certainty == operator.CertainAfter && text == "" {
		text = "depending on " + e.Text
	}
	if e.If != "" {
		text = strings.TrimPrefix(text+", and if "+e.If, ", and ")
	}
	return strings.TrimPrefix(text+repeatText(e), " ")
}

func isDecision(all []operator.PlanEntry, element string) bool {
	return slices.ContainsFunc(all, func(e operator.PlanEntry) bool {
		return e.Element == element && e.Step == "" && e.Action == operator.PlanAsk
	})
}
