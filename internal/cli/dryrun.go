package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type dryRunCommand struct{ env *environment }

const defaultSample = 20

func (c dryRunCommand) withDryRun(cmd *cobra.Command, example string, request func(cmd *cobra.Command, args []string) (operator.PlanRequest, error)) *cobra.Command {
	var dry bool
	var n int
	cmd.Flags().BoolVar(&dry, "dry-run", false, "write nothing: show the results of the steps for their first items")
	cmd.Flags().IntVar(&n, "sample", defaultSample, "with --dry-run: `N` items of each step")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case dry && n < 1:
			return usagef("--sample %d: at least 1", n)
		case dry:
			req, err := request(cmd, args)
			if err != nil {
				return err
			}
			req.Sample = n
			return c.dryRun(cmd.Context(), req)
		case cmd.Flags().Changed("sample"):
			return usagef("--sample is for --dry-run")
		}
		return run(cmd, args)
	}
	cmd.Example += "\n  " + c.env.app.Name + " " + example
	return cmd
}

func flagsOf(cmd *cobra.Command, flags map[string]*bool) error {
	for name, value := range flags {
		var err error
		if *value, err = cmd.Flags().GetBool(name); err != nil {
			return usage(err)
		}
	}
	return nil
}

func (c dryRunCommand) runDryRun(cmd *cobra.Command) *cobra.Command {
	return c.withDryRun(cmd, "run jobs/load.yaml --dry-run --sample 5", func(cmd *cobra.Command, args []string) (operator.PlanRequest, error) {
		req := operator.PlanRequest{File: args[0], Folder: c.env.dir}
		err := flagsOf(cmd, map[string]*bool{"again": &req.Again, "next": &req.Next, "from-start": &req.FromStart, "accept-changes": &req.AcceptChanges})
		if err != nil {
			return req, err
		}
		if req.Params, err = parseParameters(args[1:]); err != nil {
			return req, err
		}
		if req.Checked, err = c.env.loadJobFile(req.File); err != nil {
			return req, err
		}
		return req, readSecrets(req.Checked.Parameters(), req.Params)
	})
}

func (c dryRunCommand) restartDryRun(cmd *cobra.Command) *cobra.Command {
	return c.withDryRun(cmd, "restart 12 --from load --dry-run", func(cmd *cobra.Command, args []string) (req operator.PlanRequest, err error) {
		if req.Execution, err = parseExecution(args[0]); err != nil {
			return req, err
		}
		if req.File, err = cmd.Flags().GetString("file"); err != nil {
			return req, usage(err)
		}
		if req.From, err = cmd.Flags().GetString("from"); err != nil {
			return req, usage(err)
		}
		return req, flagsOf(cmd, map[string]*bool{"from-start": &req.FromStart, "if-complete": &req.IfComplete, "accept-changes": &req.AcceptChanges})
	})
}

// dryRun writes nothing: no execution, no table, no file.
func (c dryRunCommand) dryRun(ctx context.Context, req operator.PlanRequest) (err error) {
	if err := c.env.configure(); err != nil {
		return err
	}
	if req.Execution != 0 && c.env.isAbsent(c.env.settings.Repository.Database) {
		return c.env.notFound(core.ErrNotFound, req.Execution)
	}
	done, err := c.readOnly()
	if err != nil {
		return err
	}
	ctx, end := signal.NotifyContext(ctx, stopSignals()...)
	defer end()
	var plan *operator.DryRun
	err = c.env.withRawSession(ctx, c.env.observer(), func(s *Session) (err error) {
		plan, err = s.Service.Plan(ctx, req)
		switch {
		case errors.As(err, new(*ports.ParameterError)) && req.Execution == 0:
			return usage(err, "parameters:  "+c.env.app.Name+" run "+humanize.Quote(req.File)+" --help")
		case errors.As(err, new(*operator.Refusal)):
			return c.env.refusal(err)
		case err != nil && ctx.Err() == nil:
			return usage(err)
		}
		return err
	})
	done()
	if err != nil {
		return err
	}
	if c.env.format == formatJSON {
		err = c.env.printJSON(plan)
	} else {
		err = c.env.print(c.dryRunText(plan))
	}
	return errors.Join(err, dryRunVerdict(plan))
}

// readOnly: sessions of PostgreSQL are read-only, and a missing SQLite file is
// replaced by an empty one elsewhere. done undoes both.
func (c dryRunCommand) readOnly() (done func(), err error) {
	elsewhere := ""
	before := c.env.settings.Databases
	databases := maps.Clone(before)
	for name, d := range databases {
		switch {
		case c.env.isAbsent(name):
			if elsewhere == "" {
				if elsewhere, err = os.MkdirTemp("", "surfin-dry-run-"); err != nil {
					return nil, fmt.Errorf("make a folder for an empty database: %w", err)
				}
			}
			d.URL = "sqlite:" + filepath.Join(elsewhere, name+".db")
		case !strings.HasPrefix(d.URL, "sqlite:"):
			if d.URL, err = readOnlyURL(d.URL); err != nil {
				return nil, fmt.Errorf("database %s: %w", name, err)
			}
		}
		databases[name] = d
	}
	c.env.settings.Databases = databases
	return func() {
		c.env.settings.Databases = before
		if elsewhere == "" {
			return
		}
		if err := os.RemoveAll(elsewhere); err != nil {
			c.env.log.Warn("an empty database of the dry run could not be removed", "folder", elsewhere, "error", err)
		}
	}, nil
}

// A transaction may still request otherwise.
func readOnlyURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("its URL is malformed") // without its text, which contains the password
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "on")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // pgx does not read + as a space
	return u.String(), nil
}

func dryRunVerdict(plan *operator.DryRun) error {
	for _, s := range plan.Steps {
		switch {
		case s.Error != "":
			return &exitError{code: ExitFailed, err: fmt.Errorf("step %s would fail: %s", s.Step, humanize.OneLine(s.Error))}
		case s.Failed > 0:
			return &exitError{code: ExitFailed, err: fmt.Errorf("step %s would fail on %s", s.Step, wording.FirstFailure(s))}
		}
	}
	return nil
}
