package operator

import (
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The keys of the job context in which the flow keeps verdicts and stops.
const (
	decidedKey = "surfin.decided."
	whenKey    = "surfin.when."
	stoppedKey = "surfin.stopped_at."
)

// decisions are the verdicts of decisions and conditions that the execution has
// recorded.
func decisions(e *core.JobExecution) []DecisionView {
	if e.Context == nil {
		return nil
	}
	var list []DecisionView
	for _, key := range e.Context.Keys() {
		value, _ := e.Context.Get(key)
		text, isText := value.(string)
		if !isText {
			continue
		}
		_, verdict, _ := strings.Cut(text, " ") // before it is the step that it followed
		if name, ok := strings.CutPrefix(key, decidedKey); ok {
			list = append(list, DecisionView{"decide", name, verdict})
		}
		if name, ok := strings.CutPrefix(key, whenKey); ok {
			list = append(list, DecisionView{"when", name, verdict})
		}
	}
	return list
}
