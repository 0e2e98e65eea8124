package cli

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/site"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (c serverCommands) serveCommand() *cobra.Command {
	var jobs, labels []string
	var slots int
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the REST API: run and operate jobs over HTTP",
		Long: `Serves the REST API, and runs the jobs that its clients start, until it is stopped.
Clients run the jobs of --jobs by their names, and no others. A job file is read again
for each run, so a correction takes effect; a new file takes effect after a restart of
the server.

Clients have tokens: api.operator_tokens.NAME may do everything, api.viewer_tokens.NAME
may read (see "` + c.env.app.Name + ` help settings"). Browsers sign in with a token at /login. Without any
token the server listens on a loopback address only and is read-only; it prints a link
that makes an operator's session in one browser, once, for ten minutes. Tokens are sent
in plain text: put a proxy with TLS in front of a server that other machines call. The
proxy may sign users in (api.proxy).

A worker starts registered jobs when they are due. With --worker the server is also a
worker with that many slots, and the leader if no other worker is.

After SIGINT or SIGTERM the server takes no more requests and finishes the current
chunks: its executions are STOPPED, and can be restarted. Parked executions continue on
their workers. A second signal cancels.

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
	f.StringArrayVar(&jobs, "jobs", nil, "a job file, or a `FOLDER` of job files, that clients may run; repeat it for more")
	f.IntVar(&slots, "worker", 0, "also work as a worker with `SLOTS` slots (1 without a number)")
	f.Lookup("worker").NoOptDefVal = "1"
	labelFlag(f, &labels)
	f.Var(&settingValue{env: c.env, name: "--listen", key: "api.listen"}, "listen", "`ADDRESS` HOST:PORT of the API (default: api.listen)")
	return cmd
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
	at, err := access.Listen(ctx, c.env.settings.API.Listen, c.env.settings.API.Clients, c.env.settings.API.Proxy.From...)
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
			return api.Serve(ctx, signals.stop, at, site.Of(api.Config{
				Service: s.Service, Planner: planner, Jobs: catalog, Tasks: s.Tasks, Clients: c.env.settings.API.Clients, Rate: c.env.settings.API.Rate, Log: c.env.log,
				Paths: c.env.settings.API.Paths, Proxy: access.Proxy(c.env.settings.API.Proxy), BasePath: c.env.settings.API.BasePath,
				Announce: func(guard *access.Guard) { c.announceLink(ctx, at, guard) },
			}, c.env.settings.Secrets, c.env.app.Name))
		})
	})
}

func (c serverCommands) workBeside(ctx context.Context, s *Session, stop <-chan struct{}, slots int, labels map[string]string) (wait func()) {
	o := runtime.Options{Slots: slots, Labels: labels, Poll: runtime.DefaultPoll, Drain: runtime.DefaultDrain, Report: func(e runtime.Event) { c.workerEvent(ctx, e) }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Work(ctx, stop, o); err != nil {
			c.env.log.ErrorContext(ctx, "the worker of the server ended", "error", humanize.OneLine(err.Error()))
		}
	}()
	c.env.log.InfoContext(ctx, fmt.Sprintf("the server works as well, with %d slots", slots))
	return func() { <-done }
}

// noWorker returns false if the database does not answer.
func noWorker(ctx context.Context, s *Session) bool {
	if s.Tasks == nil {
		return false
	}
	workers, err := s.Tasks.Workers(ctx)
	return err == nil && !slices.ContainsFunc(workers, func(w taskports.Worker) bool { return w.State == "ACTIVE" })
}

// The session cannot write by mistake.
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
		"jobs", humanize.Join(catalog.Names()), "clients", len(clients))
	if len(clients)+len(c.env.settings.API.Proxy.From) == 0 {
		c.env.log.WarnContext(ctx, "without tokens the API changes nothing: set api.operator_tokens.NAME, or open the link that follows")
	}
}

// announceLink prints the link itself, and not to the log, which others may read.
func (c serverCommands) announceLink(ctx context.Context, at net.Listener, guard *access.Guard) {
	link := guard.NewLink()
	if link == "" {
		return
	}
	if err := c.env.print("Open this link within ten minutes to operate jobs in your browser; it works once: http://" + at.Addr().String() + link + "\n"); err != nil {
		c.env.log.WarnContext(ctx, "the link for operating jobs could not be printed", "error", err)
	}
}
