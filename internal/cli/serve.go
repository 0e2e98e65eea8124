package cli

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func (c serverCommands) serveCommand() *cobra.Command {
	var jobs, labels []string
	var slots int
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the REST API: run and operate jobs over HTTP",
		Long: `Serves the REST API, and runs what it is asked to run, until it is stopped. Clients
run the jobs of --jobs by their names, and no others. A job file is read anew for each
run: one that was corrected takes effect; a new file does when the server is started
again.

Clients have tokens: api.operator_tokens.NAME may do everything, api.viewer_tokens.NAME
may read (see "` + c.env.app.Name + ` help settings"). Without any the server listens on a loopback
address only, can be read, and changes nothing. Tokens travel as they are: put a
proxy with TLS before a server that is called from other machines.

A server starts what its clients ask for. Registered jobs that are due are started by a
worker: with --worker the server is one, too, with that many slots, and leads where no
other worker does.

SIGINT or SIGTERM takes no more requests and finishes the chunks in hand: what the
server runs is STOPPED, and can be restarted. What is parked, since workers have its
work, goes on without the server. A second one cancels.

/openapi.json describes the API.`,
		Example: "  " + c.env.app.Name + " serve --jobs jobs/",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("worker") && len(args) == 1 { // --worker 4
				return cmd.Flags().Set("worker", args[0])
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("worker") && slots < 1 {
				return usagef("--worker %d: at least 1 slot", slots)
			}
			own, err := core.ParseLabels(labels)
			switch {
			case err != nil:
				return usagef("--label: %w", err)
			case len(own) > 0 && slots == 0:
				return usagef("--label is for the worker of the server: add --worker")
			}
			return c.serve(cmd.Context(), jobs, slots, own)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&jobs, "jobs", nil, "a job file, or a `FOLDER` of job files, that may be run; several times for several")
	f.IntVar(&slots, "worker", 0, "work as well, with `SLOTS` slots (1 if none are given)")
	f.Lookup("worker").NoOptDefVal = "1"
	labelFlag(f, &labels)
	f.Var(&settingValue{env: c.env, name: "--listen", key: "api.listen"}, "listen", "`ADDRESS` HOST:PORT of the API (default: api.listen)")
	return cmd
}

// settingValue is a command's flag for a key of surfin.yaml.
type settingValue struct {
	env             *environment
	name, key, text string
}

func (v *settingValue) String() string { return v.text }
func (v *settingValue) Type() string   { return "string" }
func (v *settingValue) Set(text string) error {
	v.text = text
	v.env.flags = append(v.env.flags, settings.Flag{Name: v.name, Key: v.key, Value: text})
	return nil
}

func (c serverCommands) serve(ctx context.Context, jobs []string, slots int, labels map[string]string) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	catalog, err := catalog.New(c.env.app.Registry, c.env.app.Files, jobs...)
	if err != nil {
		return usage(err)
	}
	if len(catalog.Names()) == 0 {
		return usagef("which jobs may be run? --jobs FOLDER, or --jobs FILE")
	}
	at, err := api.Listen(ctx, c.env.settings.API.Listen, c.env.settings.API.Clients)
	if err != nil {
		return usage(err)
	}
	ctx, signals := c.env.obeySignals(ctx)
	defer signals.end()
	ignoreBrokenPipes()
	return c.env.withSession(ctx, c.env.observer(), func(s *Session) error {
		c.env.announceDatabase(ctx)
		c.announceAPI(ctx, at, catalog)
		if s.Observer != nil {
			s.Observer.Observe(ctx, core.ServerStarted{Address: at.Addr().String()})
		}
		c.env.warnUnmasked(ctx)
		if slots > 0 {
			defer c.workBeside(ctx, s, signals.stop, slots, labels)()
		} else if noWorker(ctx, s) {
			c.env.log.WarnContext(ctx, "no worker is alive: registered jobs that are due are not started", "work here", "--worker", "or", c.env.app.Name+" worker")
		}
		return c.withPlanner(ctx, func(planner *operator.Service) error {
			return api.Serve(ctx, signals.stop, at, api.Config{
				Service: s.Service, Planner: planner, Jobs: catalog, Tasks: s.Tasks, Clients: c.env.settings.API.Clients, Rate: c.env.settings.API.Rate, Log: c.env.log,
				Paths: c.env.settings.API.Paths, Mask: c.env.settings.Secrets.JSON,
			})
		})
	})
}

// workBeside runs a worker in the server's process, until stop is closed. The returned function
// waits for its end.
func (c serverCommands) workBeside(ctx context.Context, s *Session, stop <-chan struct{}, slots int, labels map[string]string) (wait func()) {
	o := runtime.Options{Slots: slots, Labels: labels, Poll: runtime.DefaultPoll, Drain: runtime.DefaultDrain, Report: func(e runtime.Event) { c.workerEvent(ctx, e) }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Work(ctx, stop, o); err != nil {
			c.env.log.ErrorContext(ctx, "the worker of the server ended", "error", oneLine(err.Error()))
		}
	}()
	c.env.log.InfoContext(ctx, fmt.Sprintf("the server works as well, with %d slots", slots))
	return func() { <-done }
}

// noWorker reports whether no worker is alive, so that nothing starts registered jobs. It returns
// false if the database does not answer.
func noWorker(ctx context.Context, s *Session) bool {
	if s.Tasks == nil {
		return false
	}
	workers, err := s.Tasks.Workers(ctx)
	return err == nil && !slices.ContainsFunc(workers, func(w taskports.Worker) bool { return w.State == "ACTIVE" })
}

// withPlanner opens a second session for plans, which cannot write by mistake.
func (c serverCommands) withPlanner(ctx context.Context, serve func(planner *operator.Service) error) error {
	done, err := dryRunCommand(c).readOnly()
	if err != nil {
		return err
	}
	defer done()
	return c.env.withRawSession(ctx, nil, func(s *Session) error { return serve(s.Service) })
}

func (c serverCommands) announceAPI(ctx context.Context, at net.Listener, catalog *catalog.Catalog) {
	clients := c.env.settings.API.Clients
	c.env.log.InfoContext(ctx, fmt.Sprintf("the API is at http://%s/v1, its description at http://%s/openapi.json", at.Addr(), at.Addr()),
		"jobs", joinWords(catalog.Names()), "clients", len(clients))
	if len(clients) == 0 {
		c.env.log.WarnContext(ctx, "without tokens the API changes nothing: set api.operator_tokens.NAME")
	}
}
