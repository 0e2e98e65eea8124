package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

// findFlags are the flags of a search that are not its own fields.
type findFlags struct{ endedSince, endedUntil, longerThan string }

func (l *findFlags) add(cmd *cobra.Command, s *operator.Search) {
	f := cmd.Flags()
	f.StringArrayVar(&s.Params, "param", nil, "only executions with this parameter, as `NAME:VALUE`; several must all hold")
	f.StringVar(&s.Text, "text", "", "only executions with this `TEXT` in an error, of a step too, or in an exit code")
	f.StringVar(&l.endedSince, "ended-since", "", "only executions that ended at this `TIME` or later")
	f.StringVar(&l.endedUntil, "ended-until", "", "only executions that ended before this `TIME`")
	f.StringVar(&l.longerThan, "longer-than", "", "only executions that took longer than this `DURATION`, or run for longer (90m, 2d)")
	f.StringSliceVar(&s.Has, "has", nil, "only executions with all of these `MARKS`: "+strings.Join(operator.Marks(), ", "))
	f.StringVar(&s.Actor, "actor", "", "only executions that this `USER` has run, restarted, redriven, stopped, abandoned or recovered")
	f.StringVar(&s.Worker, "worker", "", "only executions with a step or part that this `WORKER` had: a name, HOST or HOST:PID")
	completeFlag(cmd, "has", operator.Marks()...)
}

func (l *findFlags) check(s *operator.Search, now time.Time) (err error) {
	for _, moment := range []struct {
		flag, text string
		into       *time.Time
	}{{"--ended-since", l.endedSince, &s.EndedSince}, {"--ended-until", l.endedUntil, &s.EndedUntil}} {
		if moment.text == "" {
			continue
		}
		if *moment.into, err = parseMoment(moment.flag, moment.text, now); err != nil {
			return err
		}
	}
	if l.longerThan == "" {
		return nil
	}
	d, err := parseAge("--longer-than", l.longerThan)
	s.LongerThan = d.String()
	return err
}

// wrongFlag names the flag of an invalid field.
func wrongFlag(err error) error {
	wrong, is := errors.AsType[*operator.RequestError](err)
	if !is {
		return err
	}
	named := *wrong
	named.Field = "--" + strings.ReplaceAll(wrong.Field, "_", "-")
	return usage(&named)
}

// listing is the output of a list of executions.
type listing struct {
	showCommands
	page *operator.ExecutionPage
	req  *operator.ListRequest
}

// sayRest says how many executions there are, how far a search came, and how to continue.
func (l listing) sayRest(ctx context.Context) {
	page, req := l.page, l.req
	if page.Count != nil {
		l.env.log.InfoContext(ctx, wording.Counted(*page.Count))
	}
	next := fmt.Sprintf("--before %d", page.Next)
	if req.After != 0 {
		next = fmt.Sprintf("--after %d", page.Next)
	}
	switch to := page.SearchedTo; {
	case to != nil && len(page.Executions) < req.Limit:
		l.env.log.InfoContext(ctx, wording.SearchedTo(*to)+": "+next+" continues")
	case page.Next != 0 && (l.env.format != formatJSON && l.env.format != formatCSV || !req.Search.IsEmpty() || req.After != 0):
		l.env.log.InfoContext(ctx, "there are more: "+next)
	}
}

// sayNothing explains an empty list.
func (l listing) sayNothing(ctx context.Context) error {
	page, req := l.page, l.req
	for _, note := range page.Notes {
		l.env.log.WarnContext(ctx, note)
	}
	switch {
	case page.Next != 0 || len(page.Notes) > 0:
		return nil
	case req.Search.IsEmpty() && req.After == 0 || req.Job != "":
		return l.noExecutions(ctx, req.Job)
	}
	l.env.log.InfoContext(ctx, "no such executions in "+l.env.databaseText(l.env.settings.Repository.Database))
	return nil
}
