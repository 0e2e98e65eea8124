package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
)

func (c taskCommands) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List events of inboxes that are dead, and offer them again",
		Long: `An inbox of an application keeps the events that come for its rows. One that was offered
in vain too often, or for too long, is dead: what it says is not done. Mend the cause,
then have it offered again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.deadEventsCommand(), c.offerCommand())
	return cmd
}

func (c taskCommands) deadEventsCommand() *cobra.Command {
	topic, limit := "", 100
	cmd := &cobra.Command{
		Use: "list", Short: "List dead events, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				list, err := s.DeadEvents(cmd.Context(), topic, limit)
				if err != nil {
					return err
				}
				if c.env.format == formatJSON {
					return c.env.printJSON(list)
				}
				var rows [][]string
				for _, e := range list {
					rows = append(rows, []string{
						strconv.FormatInt(e.ID, 10), e.Topic, strconv.FormatInt(e.Subject, 10), e.DedupeKey, strconv.Itoa(e.Offers), wording.Time(e.DeadAt), e.LastError,
					})
				}
				return c.printTable([]column{
					{title: "event", right: true}, {title: "topic"}, {title: "subject", right: true}, {title: "key"}, {title: "offers", right: true},
					{title: "dead at"}, {title: "last error"},
				}, rows)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "only events of this `TOPIC`")
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N` events")
	c.env.addListFormatFlag(cmd)
	return cmd
}

func (c taskCommands) offerCommand() *cobra.Command {
	var by runtime.By
	cmd := &cobra.Command{
		Use: "offer EVENT", Short: "Have a dead event offered again", Args: cobra.ExactArgs(1),
		Long: `Has the event with this number offered again, as often and as long as a new one, when
its application processes the topic the next time. The audit says who did it.`,
		Example: "  " + c.env.app.Name + " events offer 12 --reason \"the order is there now\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseNumber("EVENT", args[0])
			if err != nil {
				return err
			}
			return c.with(cmd.Context(), func(s *runtime.TaskService) error {
				acted, err := s.OfferEvent(cmd.Context(), id, by)
				return c.printActed(fmt.Sprintf("event %d: it is offered again", id), acted, err)
			})
		},
	}
	cmd.Flags().StringVar(&by.Reason, "reason", "", "why, for the audit: a `TEXT`")
	c.env.addFormatFlag(cmd)
	return cmd
}
