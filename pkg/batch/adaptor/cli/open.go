package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// configure reads the settings and starts the log. Commands that open a
// database call it first.
func (p *program) configure() error {
	s, err := settings.Load(settings.Source{Dir: p.dir, File: p.config, Environ: p.environ, Flags: p.flags})
	if err != nil {
		return usage(err)
	}
	level := s.Log.Level
	if p.debug {
		level = "debug"
	}
	p.settings = s
	p.log = newLogger(p.err, level, s.Log.Format)
	for _, w := range s.Warnings {
		p.log.Warn(w)
	}
	return nil
}

// withSession opens what runs jobs, hands it to f and closes it, also after a
// failure. The repository's schema is as it should be.
func (p *program) withSession(ctx context.Context, observer core.Observer, f func(s *Session) error) error {
	return p.withRawSession(ctx, observer, func(s *Session) error {
		if err := s.Service.Prepare(ctx); err != nil { // rule R4
			return p.refusal(err)
		}
		return f(s)
	})
}

// withRawSession is withSession whatever the repository's schema is.
func (p *program) withRawSession(ctx context.Context, observer core.Observer, f func(s *Session) error) (err error) {
	s, err := p.app.Open(ctx, p.settings, observer)
	if err != nil {
		return fmt.Errorf("open %s: %w", p.databaseText(p.settings.Repository.Database), err)
	}
	defer func() {
		if closing := s.Close(context.WithoutCancel(ctx)); closing != nil && err == nil {
			err = fmt.Errorf("close the databases: %w", closing)
		}
	}()
	return f(s)
}

// absent reports that a database is an SQLite file that is not there: nothing
// was ever run in it, and a command that only reads must not make it.
func (p *program) absent(name string) bool {
	path, ok := strings.CutPrefix(p.settings.Databases[name].URL, "sqlite:")
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// databaseText names a database for people, with its name where it is not the
// default one.
func (p *program) databaseText(name string) string {
	d, ok := p.settings.Databases[name]
	if !ok {
		return "database " + name
	}
	if name == tx.Default {
		return d.String()
	}
	return name + ": " + d.String()
}

// announceDatabase says in which database the command works, and how to use
// another one: the first line that a newcomer sees.
func (p *program) announceDatabase(ctx context.Context) {
	name := p.settings.Repository.Database
	how := "DATABASE_URL to change"
	if name != tx.Default {
		how = "repository.database"
	} else if origin := p.settings.Databases[name].Origin; origin != "" {
		how = "from " + origin
	}
	p.log.InfoContext(ctx, p.databaseText(name)+" ("+how+")")
}

// checkDatabase refuses the name of a database that is not configured.
func (p *program) checkDatabase(name string) error {
	if _, ok := p.settings.Databases[name]; !ok {
		return usagef("there is no database %q (there are: %s)", name, joinWords(p.settings.Names()))
	}
	return nil
}
