package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/runtime"
)

func (c taskCommands) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "List dead events of inboxes, and offer them again",
		Long: `An application's inbox keeps the events for its rows. An event whose offers failed too
often, or for too long, is dead: its work is not done. Fix the cause, then offer it again.`,
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
						strconv.FormatInt(e.ID, 10), e.Topic, strconv.FormatInt(e.Subject, 10), e.DedupeKey, strconv.Itoa(e.Offers), humanize.Time(e.DeadAt), e.LastError,
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
		Use: "offer EVENT", Short: "Offer a dead event again", Args: cobra.ExactArgs(1),
		Long: `Offers the event with this number again, as often and as long as a new one, when its
application next processes the topic. The audit records the actor.`,
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
	cmd.Flags().StringVar(&by.Reason, "reason", "", "reason for the audit: a `TEXT`")
	c.env.addFormatFlag(cmd)
	return cmd
}
