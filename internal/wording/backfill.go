package wording

import (
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// BackfillEffect describes the effect of a back-fill on the instance of a value.
func BackfillEffect(item *operator.BackfillItem) string {
	switch item.Effect {
	case operator.BackfillNew:
		return "run a new instance"
	case operator.BackfillResume:
		return "resume execution " + ID(item.Execution)
	case operator.BackfillRefused:
		return "refused: " + humanize.OneLine(item.Refused.Error())
	case operator.BackfillLeft:
	}
	switch item.Status {
	case "":
		return "leave out: it never ran"
	case core.StatusCompleted:
		return "leave out: complete by execution " + ID(item.Execution)
	default:
		return "leave out: it ran, execution " + ID(item.Execution)
	}
}
