package console

import (
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type statusView struct {
	Word  string
	Class string
}

type state struct {
	// class names the shape in icons.svg and the color in the style sheet.
	class string
	// mark is the shape as a character, in pictures.
	mark string
	// says is the end of a sentence.
	says string
}

func stateOf(s core.Status) state {
	switch s {
	case core.StatusStarting:
		return state{"starting", "◌", "is about to start"}
	case core.StatusStarted:
		return state{"running", "▸", "is running"}
	case core.StatusParked:
		return state{"parked", "‖", "is parked"}
	case core.StatusStopping:
		return state{"stopping", "▪", "is stopping"}
	case core.StatusStopped:
		return state{"stopped", "■", "stopped"}
	case core.StatusCompleted:
		return state{"completed", "✓", "completed"}
	case core.StatusFailed:
		return state{"failed", "✕", "failed"}
	case core.StatusAbandoned:
		return state{"abandoned", "⊘", "is abandoned"}
	case core.StatusUnknown:
		return state{"unknown", "?", "has an unknown outcome"}
	}
	return state{"none", "", string(s)}
}

func status(s core.Status) statusView {
	return statusView{string(s), stateOf(s).class}
}

// stateView is a state of tasks, groups and workers.
func stateView(text string) statusView {
	class := map[string]string{
		"SUCCEEDED": "completed", "SUCCESS": "completed", "COMPLETED": "completed", "ACTIVE": "running", "RUNNING": "running", "FAILED": "failed",
		"TIMED_OUT": "failed", "LOST": "failed", "DEAD": "failed", "CANCELED": "stopped", "CANCELLED": "stopped", "DRAINING": "stopping", "GONE": "abandoned",
		"PENDING": "starting", "WAITING": "parked", "ASSIGNED": "starting", "ORPHANED": "unknown",
	}[strings.ToUpper(text)]
	if class == "" {
		class = "none"
	}
	return statusView{text, class}
}

// partCount is a number of parts or tasks in a state, with its place in a bar.
type partCount struct {
	statusView
	Count, Text string
	// X and Width are in thousandths of the bar.
	X, Width int
}
