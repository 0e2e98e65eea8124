package cli

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/api"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func (c serverCommands) serveCommand() *cobra.Command {
	var jobs []string
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

SIGINT or SIGTERM takes no more requests and finishes the chunks in hand: what the
server runs is STOPPED, and can be restarted. A second one cancels.

/openapi.json describes the API.`,
		Example: "  " + c.env.app.Name + " serve --jobs jobs/",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context(), jobs) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&jobs, "jobs", nil, "a job file, or a `FOLDER` of job files, that may be run; several times for several")
	f.Var(&settingValue{env: c.env, name: "--listen", key: "api.listen"}, "listen", "`ADDRESS` HOST:PORT of the API (default: api.listen)")
	return cmd
}

// settingValue is a flag of one command that says the same as a key of surfin.yaml.
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

func (c serverCommands) serve(ctx context.Context, jobs []string) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	catalog, err := operator.NewCatalog(c.env.app.Registry, c.env.app.Files, jobs...)
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
		c.env.warnUnmasked(ctx)
		return c.withPlanner(ctx, func(planner *operator.Service) error {
			return api.Serve(ctx, signals.stop, at, api.Config{
				Service: s.Service, Planner: planner, Jobs: catalog, Tasks: s.Tasks, Clients: c.env.settings.API.Clients, Rate: c.env.settings.API.Rate, Log: c.env.log,
				Paths: c.env.settings.API.Paths, Mask: c.env.settings.Secrets.JSON,
			})
		})
	})
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

func (c serverCommands) announceAPI(ctx context.Context, at net.Listener, catalog *operator.Catalog) {
	clients := c.env.settings.API.Clients
	c.env.log.InfoContext(ctx, fmt.Sprintf("the API is at http://%s/v1, its description at http://%s/openapi.json", at.Addr(), at.Addr()),
		"jobs", joinWords(catalog.Names()), "clients", len(clients))
	if len(clients) == 0 {
		c.env.log.WarnContext(ctx, "without tokens the API changes nothing: set api.operator_tokens.NAME")
	}
}
