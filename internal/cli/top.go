package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

const minInterval = 10 * time.Millisecond

type topFlags struct {
	interval time.Duration
	once     bool
	job      string
}

func (c showCommands) topCommand() *cobra.Command {
	var o topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what is running: progress, speed, time left",
		Long: `Shows the running executions of the database, from any terminal: the rows that their
steps have read, written, filtered and skipped, their speed, and their processes.
Percent and time left are estimated from the newest completed executions of the same
job; without any they are "?".

A terminal is redrawn in place until Ctrl-C; elsewhere each refresh prints a line for
each running step.`,
		Example: "  " + c.env.app.Name + " top\n  " + c.env.app.Name + " top --once --format json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.interval < minInterval {
				return usagef("--interval %v: at least %v", o.interval, minInterval)
			}
			return c.top(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.interval, "interval", time.Second, "`TIME` between two refreshes")
	f.BoolVar(&o.once, "once", false, "print once")
	f.StringVar(&o.job, "job", "", "only executions of the job with this `NAME`")
	c.env.addFormatFlag(cmd)
	return cmd
}

func (c showCommands) top(ctx context.Context, o topFlags) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	if c.env.isAbsent(c.env.settings.Repository.Database) {
		return c.printProgress([]operator.ProgressView{})
	}
	ctx, end := signal.NotifyContext(ctx, stopSignals()...)
	defer end()
	return c.env.withSession(ctx, c.env.observer(), func(s *Session) error {
		req := operator.ProgressRequest{Job: o.job}
		if o.once {
			views, err := s.Service.Progress(ctx, req)
			if err != nil {
				return err
			}
			return c.printProgress(views)
		}
		meter := s.Service.Meter(req)
		ticker := time.NewTicker(o.interval)
		defer ticker.Stop()
		screen := c.newTopView()
		for {
			views, err := meter.Refresh(ctx)
			if ctx.Err() != nil {
				return nil // the usual way to leave it
			}
			if err != nil {
				return err
			}
			if err := screen.draw(views); err != nil {
				return err
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

func (c showCommands) printProgress(views []operator.ProgressView) error {
	if c.env.format == formatJSON {
		return c.env.printJSON(views)
	}
	return c.env.print(c.progressTable(views))
}

type topView struct {
	env      *environment
	terminal *os.File // may be nil
	lines    int      // drawn by the last refresh
}

func (c showCommands) newTopView() *topView {
	s := &topView{env: c.env}
	if w, ok := c.env.out.(*colorprofile.Writer); ok && w.Profile > colorprofile.NoTTY {
		if f, ok := w.Forward.(*os.File); ok && hasWidth(f) {
			s.terminal = f
		}
	}
	return s
}

func (s *topView) draw(views []operator.ProgressView) error {
	switch {
	case s.env.format == formatJSON:
		line, err := json.Marshal(views)
		if err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return s.env.print(string(line) + "\n")
	case s.terminal == nil:
		return s.env.print(showCommands{s.env}.progressLines(views))
	}
	text := showCommands{s.env}.progressTable(views)
	width, height, err := term.GetSize(s.terminal.Fd())
	if err != nil {
		return fmt.Errorf("the size of the terminal: %w", err)
	}
	frame, lines := redraw(text, s.lines, width, height)
	s.lines = lines
	return s.env.print(frame)
}

// No wider and no higher than the terminal: wrapped lines could not be erased.
func redraw(text string, before, width, height int) (frame string, lines int) {
	list := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	list = list[:min(len(list), max(1, height-1))]
	for i, line := range list {
		list[i] = ansi.Truncate(line, max(1, width), "")
	}
	if before > 0 {
		frame = fmt.Sprintf("\x1b[%dA\x1b[J", before)
	}
	return frame + strings.Join(list, "\n") + "\n", len(list)
}

func (c showCommands) progressTable(views []operator.ProgressView) string {
	if len(views) == 0 {
		return "nothing is running in " + c.env.databaseText(c.env.settings.Repository.Database) + "\n"
	}
	columns := []column{
		{title: "execution", right: true}, {title: "job"}, {title: "step"}, {title: "read", right: true}, {title: "written", right: true},
		{title: "filtered", right: true}, {title: "skipped", right: true}, {title: "rows/s", right: true}, {title: "done", right: true},
		{title: "left", right: true}, {title: "partitions", right: true}, {title: "running", right: true}, {title: "state"}, {title: "owner"},
	}
	var rows [][]string
	for i := range views {
		r := &views[i]
		rows = append(rows, []string{
			wording.ID(r.Execution), r.JobName, orDash(r.Step), humanize.Count(r.Read), humanize.Count(r.Written), humanize.Count(r.Filtered), humanize.Count(r.Skipped),
			humanize.Count(int64(r.PerSecond)), wording.Percent(r), wording.TimeLeft(r), orDash(wording.Work(r)), humanize.Seconds(r.Duration), string(r.Status) + wording.StateNote(r), c.env.words().DoneBy(r),
		})
	}
	return renderTable(columns, rows)
}

func (c showCommands) progressLines(views []operator.ProgressView) string {
	at := c.env.now().UTC().Format(time.TimeOnly)
	if len(views) == 0 {
		return at + " nothing is running\n"
	}
	var b strings.Builder
	for i := range views {
		b.WriteString(at + " " + c.env.words().Progress(&views[i]) + "\n")
	}
	return b.String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
