package cli

import (
	"context"
	"encoding/json"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

const (
	followEvery = time.Second
	// followAfter is the time after the end of an execution in which its last lines are awaited.
	followAfter = 3 * time.Second
)

type logCommands struct{ env *environment }

type logFlags struct {
	req    operator.LogRequest
	last   int
	follow bool
}

func (c logCommands) command() *cobra.Command {
	var o logFlags
	cmd := &cobra.Command{
		Use:   "log EXECUTION",
		Short: "Show the log of an execution",
		Long: `Shows the log that the history has of an execution: the lines of the log of its
processes from level info on, rollbacks and retries, the lines of components, both
outputs of the tasklet shell, the causes of a failure, and the stack of a panic. Every
attempt has its own. Lines that are left out are counted where they would be.`,
		Example: "  " + c.env.app.Name + " log 12\n" +
			"  " + c.env.app.Name + " log 12 --step load --level warn\n" +
			"  " + c.env.app.Name + " log 12 --follow",
		Args:              oneExecution,
		ValidArgsFunction: c.env.completeExecution,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseExecution(args[0])
			if err != nil {
				return err
			}
			o.req.Execution = id
			return c.log(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.req.Step, "step", "", "only lines of this `STEP` with its parts, or of STEP:PART")
	f.IntVar(&o.req.Attempt, "attempt", 0, "the log of attempt `N` of the same instance")
	f.StringVar(&o.req.Level, "level", "", "only lines of this `LEVEL` or a higher one: debug, info, warn or error")
	f.StringVar(&o.req.Text, "text", "", "only lines with this `TEXT`, in upper or lower case")
	f.IntVar(&o.last, "last", 0, "only the last `N` lines")
	f.BoolVar(&o.follow, "follow", false, "wait for further lines until the execution is over")
	c.env.addFormats(cmd, "table, or json (one object per line)", formatTable, formatJSON)
	return cmd
}

func (c logCommands) log(ctx context.Context, o logFlags) error {
	if o.last < 0 {
		return usagef("--last %d: at least 1", o.last)
	}
	if o.follow {
		var end func()
		ctx, end = signal.NotifyContext(ctx, stopSignals()...)
		defer end()
	}
	return c.env.view(ctx, o.req.Execution, func(s *Session) error {
		page, err := c.logUpTo(ctx, s, o)
		if err != nil || !o.follow {
			if err == nil {
				c.noteLeftOut(page)
			}
			return err
		}
		if page, err = c.followLog(ctx, s, o.req, page); err == nil {
			c.noteLeftOut(page)
		}
		if ctx.Err() != nil {
			return nil // the usual way to leave it
		}
		return err
	})
}

// logUpTo prints the lines that are stored, page by page.
func (c logCommands) logUpTo(ctx context.Context, s *Session, o logFlags) (*operator.ExecutionLog, error) {
	if o.last > 0 {
		return c.lastLines(ctx, s, o)
	}
	for req := o.req; ; {
		page, err := s.Service.Log(ctx, req)
		if err != nil {
			return nil, err
		}
		if err := c.printLines(page.Lines); err != nil || !page.More {
			return page, err
		}
		req.After = page.Next
	}
}

func (c logCommands) lastLines(ctx context.Context, s *Session, o logFlags) (newest *operator.ExecutionLog, err error) {
	var lines []operator.LogLineView
	req := o.req
	for req.After = operator.LogEnd; ; {
		page, err := s.Service.Log(ctx, req)
		if err != nil {
			return nil, err
		}
		if newest == nil {
			newest = page
		}
		lines = append(page.Lines[:len(page.Lines):len(page.Lines)], lines...)
		if len(lines) >= o.last || page.Previous == 0 {
			return newest, c.printLines(lines[max(0, len(lines)-o.last):])
		}
		req.Before = page.Previous
	}
}

// followLog prints further lines until the execution is over. Reads ride out a database that is away.
func (c logCommands) followLog(ctx context.Context, s *Session, req operator.LogRequest, page *operator.ExecutionLog) (*operator.ExecutionLog, error) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var over time.Time
	for {
		now := c.env.now()
		switch {
		case !page.Over || page.More:
			over = time.Time{}
		case over.IsZero():
			over = now
		case now.Sub(over) >= followAfter:
			return page, nil
		}
		if !page.More {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return page, nil
			}
		}
		req.After = page.Next
		next, err := s.Service.Log(ctx, req)
		if err != nil {
			return page, err
		}
		if len(next.Lines) > 0 {
			over = time.Time{}
		}
		if page = next; c.printLines(page.Lines) != nil {
			return page, nil
		}
	}
}

func (c logCommands) printLines(lines []operator.LogLineView) error {
	var b strings.Builder
	for _, l := range lines {
		if c.env.format == formatJSON {
			text, err := json.Marshal(l)
			if err != nil {
				return err
			}
			b.WriteString(string(text) + "\n")
			continue
		}
		b.WriteString(wording.LogLine(l) + "\n")
	}
	return c.env.print(b.String())
}

// noteLeftOut is for people: in JSON the lines say so.
func (c logCommands) noteLeftOut(page *operator.ExecutionLog) {
	if text := wording.LogLeftOut(page.LeftOut); text != "" && c.env.format != formatJSON {
		c.env.log.Info(text)
	}
	if page.Stored == 0 {
		c.env.log.Info("the history has no log of this execution: its process ended before it stored a line, it is older than schema 2.17, or log.execution_bytes is 0")
	}
}
