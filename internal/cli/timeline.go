package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c timeCommands) timelineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "timeline EXECUTION",
		Short: "Show when the steps, parts and tasks of an instance ran, and waited",
		Long: `Shows the time line of all attempts of an execution's instance: attempts, steps,
parts, tasks and child jobs as bars, waits for a worker or for other work pale, and
the chain of steps that decided how long the newest attempt took. Of a step with
more than 20 parts or tasks it shows the longest and the failed ones; JSON has all of
them, up to 2,000 spans.`,
		Example:           "  " + c.env.app.Name + " timeline 12",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			return c.timeline(cmd.Context(), id)
		},
	}
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c timeCommands) timeline(ctx context.Context, id core.JobExecutionID) error {
	var found *operator.Timeline
	err := c.env.view(ctx, id, func(s *Session) (err error) {
		found, err = s.Service.Timeline(ctx, operator.TimelineRequest{Execution: id})
		return err
	})
	switch {
	case err != nil:
		return err
	case c.env.format == formatJSON:
		return c.env.printJSON(found)
	}
	return c.env.print(timelineText(found))
}

// mostInner is how many parts and tasks of a step are shown as bars.
const mostInner = 20

func timelineText(t *operator.Timeline) string {
	columns := []column{{title: "span"}, {title: "status"}, {title: "started"}, {title: "duration", right: true}, {title: "time"}, {title: "worker"}}
	ruler := ruler{from: t.From, to: t.To}
	var rows [][]string
	shown, left := fewSpans(t.Spans)
	for i := range shown {
		rows = append(rows, ruler.row(&shown[i]))
		if n := left[i]; n > 0 {
			rows = append(rows, []string{"    " + humanize.Count(n) + " more"})
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job %s, instance %d: %s to %s, %s\n", t.JobName, t.InstanceID, humanize.Time(t.From), humanize.Time(t.To), humanize.Duration(t.To.Sub(t.From)))
	for _, text := range []string{wording.CriticalPath(t), wording.Omitted(t)} {
		if text != "" {
			b.WriteString(text + "\n")
		}
	}
	b.WriteString("\n" + renderTable(columns, rows))
	if len(t.Lanes) > 0 {
		b.WriteString("\n" + ruler.laneTable(t.Lanes))
	}
	return b.String()
}

// fewSpans leaves out spans inside of a step that has many, but for the longest and the failed ones, and
// counts them after the last one that is shown.
func fewSpans(all []operator.Span) (shown []operator.Span, left map[int]int) {
	left = map[int]int{}
	for first := 0; first < len(all); {
		next := first + 1
		for next < len(all) && isInner(&all[first]) && isInner(&all[next]) && all[next].Of == all[first].Of {
			next++
		}
		group := all[first:next]
		if len(group) <= mostInner {
			shown = append(shown, group...)
			first = next
			continue
		}
		hidden := len(group)
		for _, at := range notable(group) {
			shown = append(shown, group[at])
			hidden--
		}
		left[len(shown)-1] += hidden
		first = next
	}
	return shown, left
}

func isInner(s *operator.Span) bool { return s.Of != 0 && s.Kind != operator.SpanStep }

// notable are the indices of the failed and lost ones, and of the longest ones, in order.
func notable(group []operator.Span) []int {
	const longest = 5
	least := math.Inf(1)
	var durations []float64
	for i := range group {
		if s := &group[i]; s.Kind != operator.SpanWait {
			durations = append(durations, s.Duration)
		}
	}
	if n := len(durations); n > 0 {
		slices.Sort(durations)
		least = durations[max(0, n-longest)]
	}
	var list []int
	for i := range group {
		s := &group[i]
		if s.Kind != operator.SpanWait && (s.Duration >= least || s.Lost || s.Longest || s.Status == string(core.StatusFailed)) && len(list) < mostInner {
			list = append(list, i)
		}
	}
	return list
}

// ruler places times in a bar of text.
type ruler struct{ from, to time.Time }

const rulerWidth = 40

func (r ruler) bar(from, to time.Time, sign string) string {
	at := func(t time.Time) int {
		if !r.to.After(r.from) {
			return 0
		}
		share := float64(t.Sub(r.from)) / float64(r.to.Sub(r.from))
		return int(math.Round(rulerWidth * min(1, max(0, share))))
	}
	if to.IsZero() {
		to = r.to
	}
	first := min(at(from), rulerWidth-1)
	return strings.Repeat(" ", first) + strings.Repeat(sign, max(1, at(to)-first))
}

func (r ruler) row(s *operator.Span) []string {
	name, sign := s.Name, "█"
	if s.Round > 0 {
		name += fmt.Sprintf(" (round %d)", s.Round)
	}
	switch {
	case s.Kind == operator.SpanAttempt:
		name = fmt.Sprintf("%s (execution %d)", name, s.Execution)
	case s.Kind == operator.SpanChild:
		name = fmt.Sprintf("    job %s (execution %d)", name, s.Execution)
	case s.Kind == operator.SpanStep:
		name = "  " + name
	case s.Of != 0:
		name = "    " + name
	case s.Step != 0:
		name = "  " + name
	}
	if s.Kind == operator.SpanWait {
		sign = "░"
	}
	return []string{
		name, wording.SpanState(s), humanize.Time(s.Started), humanize.Seconds(s.Duration), r.bar(s.Started, s.Ended, sign), wording.Worker(s.Process, s.Worker),
	}
}

func (r ruler) laneTable(lanes []operator.Lane) string {
	columns := []column{
		{title: "lane"}, {title: "count", right: true}, {title: "statuses"}, {title: "busy", right: true}, {title: "waited", right: true}, {title: "read", right: true},
		{title: "written", right: true}, {title: "time"}, {title: "worker"},
	}
	var rows [][]string
	for i := range lanes {
		l := &lanes[i]
		bar := ""
		if !l.Started.IsZero() {
			bar = r.bar(l.Started, l.Ended, "█")
		}
		rows = append(rows, []string{
			fmt.Sprintf("%ss of %s", l.Kind, l.Name), humanize.Count(l.Count), wording.LaneStatuses(l), humanize.Seconds(l.Busy), humanize.Seconds(l.Waited),
			humanize.Count(l.Read), humanize.Count(l.Written), bar, wording.Worker(l.Process, l.Worker),
		})
	}
	return renderTable(columns, rows)
}
