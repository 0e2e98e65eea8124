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

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// defaultSample is how many items of each step a dry run shows.
const defaultSample = 20

// withDryRun gives `run` its flags --dry-run and --sample.
func (p *program) withDryRun(cmd *cobra.Command) *cobra.Command {
	var dry bool
	var n int
	cmd.Flags().BoolVar(&dry, "dry-run", false, "write nothing: show what the steps would make of their first items")
	cmd.Flags().IntVar(&n, "sample", defaultSample, "with --dry-run: `N` items of each step")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case dry && n < 1:
			return usagef("--sample %d: at least 1", n)
		case dry:
			return p.dryRun(cmd.Context(), args[0], args[1:], n)
		case cmd.Flags().Changed("sample"):
			return usagef("--sample is for --dry-run")
		}
		return run(cmd, args)
	}
	cmd.Example += "\n  " + p.app.Name + " run jobs/load.yaml --dry-run --sample 5"
	return cmd
}

// dryRun shows what a run would do with the first items of each chunk step. It
// writes nothing: no execution, no table, no file.
func (p *program) dryRun(ctx context.Context, path string, words []string, n int) error {
	given, err := parseParameters(words)
	if err != nil {
		return err
	}
	file, err := p.load(path)
	if err != nil {
		return err
	}
	params, err := job.ValidateParameters(file.Parameters(), given)
	if err != nil {
		return usage(err, "parameters:  "+p.app.Name+" run "+shellQuote(path)+" --help")
	}
	if err := p.configure(); err != nil {
		return err
	}
	done, err := p.readOnly()
	if err != nil {
		return err
	}
	ctx, end := signal.NotifyContext(ctx, endings()...)
	defer end()
	r := &rehearsal{n: n, params: params, file: file, uses: file.Uses(params)}
	err = p.withRawSession(ctx, p.quiet(), func(s *Session) error {
		j, err := file.Compile(jobfile.Deps{Provider: s.Provider, Registry: s.Registry})
		if err != nil {
			return usage(err)
		}
		if j.Bind != nil {
			if err := j.Bind(ctx, params); err != nil {
				return usage(err)
			}
		}
		r.job = j
		return r.run(ctx)
	})
	done()
	if err != nil {
		return err
	}
	if p.format == formatJSON {
		err = p.printJSON(r.record())
	} else {
		err = p.print(r.text(p))
	}
	return errors.Join(err, r.verdict())
}

// readOnly changes the settings so that nothing can be written to the databases by
// mistake: sessions of PostgreSQL are read-only, and in the place of an SQLite file
// that is not there is an empty one elsewhere. done takes both back.
func (p *program) readOnly() (done func(), err error) {
	elsewhere := ""
	before := p.settings.Databases
	databases := maps.Clone(before)
	for name, d := range databases {
		switch {
		case p.absent(name):
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
	p.settings.Databases = databases
	return func() {
		p.settings.Databases = before
		if elsewhere == "" {
			return
		}
		if err := os.RemoveAll(elsewhere); err != nil {
			p.log.Warn("an empty database of the dry run is left behind", "folder", elsewhere, "error", err)
		}
	}, nil
}

// readOnlyURL makes every transaction of a PostgreSQL session read-only that does
// not say otherwise.
func readOnlyURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("its URL is malformed") // without its text, which has the password
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "on")
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// verdict is the command's end: an error where a step would fail.
func (r *rehearsal) verdict() error {
	for _, s := range r.steps {
		switch {
		case s.Error != "":
			return &exitError{code: ExitFailed, err: fmt.Errorf("step %s would fail: %s", s.Step, s.Error)}
		case s.Failed > 0:
			return &exitError{code: ExitFailed, err: fmt.Errorf("step %s would fail on %s", s.Step, s.firstFailure())}
		}
	}
	return nil
}

func (s *rehearsed) firstFailure() string {
	for _, item := range s.Items {
		if item.Outcome == outcomeFailed {
			return item.place() + ": " + item.Error
		}
	}
	return "an item"
}

// rehearsal is a dry run.
type rehearsal struct {
	n      int
	params core.Parameters
	file   *jobfile.File
	uses   []jobfile.Used
	job    *core.Job
	steps  []*rehearsed
}
