package batchtest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const repositoryPrefix = "surfin_"

// The folder of the run is written as DIR.
type state struct {
	parts  map[string][]string
	broken []string
}

func newState(e *Env, ignore []string, before core.JobExecutionID) (*state, error) {
	s := &state{parts: map[string][]string{}}
	ctx := e.t.Context()
	for _, name := range e.provider.Names() {
		if err := s.tables(ctx, e.Database(name), ignore); err != nil {
			return nil, fmt.Errorf("database %s: %w", name, err)
		}
	}
	if err := s.files(e.Dir(), ignore); err != nil {
		return nil, err
	}
	if err := s.history(ctx, e.Repository(), before); err != nil {
		return nil, err
	}
	for _, lines := range s.parts {
		for i, l := range lines {
			lines[i] = strings.ReplaceAll(l, e.Dir(), "DIR")
		}
		slices.Sort(lines)
	}
	return s, nil
}

func (s *state) tables(ctx context.Context, db tx.Database, ignore []string) error {
	list := "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
	switch db.Dialect() {
	case tx.SQLite:
	case tx.MySQL:
		list = "select table_name from information_schema.tables where table_schema = database()"
	case tx.Postgres:
		// All schemas, unless the URL confines everything to one.
		list = `select case schemaname when current_schema() then tablename else schemaname || '.' || tablename end
			from pg_tables where schemaname not in ('pg_catalog', 'information_schema')
			and (current_schema() = 'public' or schemaname = any (current_schemas(false)))`
	}
	names, err := queryText(ctx, db, list)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, repositoryPrefix) || slices.Contains(ignore, name) {
			continue
		}
		rows, err := queryText(ctx, db, "select * from "+db.Dialect().Quote(name))
		if err != nil {
			return err
		}
		s.parts["table "+db.Name()+"."+name] = rows
	}
	return nil
}

func (s *state) files(dir string, ignore []string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); slices.Contains(ignore, name) {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // of the test's own folder
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			s.parts["file "+name] = append(s.parts["file "+name], fmt.Sprintf("%d: %s", i+1, line))
		}
		return nil
	})
}

// Executions up to before are not the job's.
func (s *state) history(ctx context.Context, r ports.Repository, before core.JobExecutionID) error {
	list, err := r.Executions(ctx, ports.ExecutionFilter{Limit: page})
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e core.JobExecution) bool { return e.ID <= before })
	totals := map[string]core.Counters{}
	s.parts["skipped items"] = nil
	for i, exec := range list {
		switch {
		case i == 0 && exec.Status != core.StatusCompleted:
			s.brokenf("the last execution is %s: %s", exec.Status, exec.Error)
		case i > 0 && exec.Status != core.StatusFailed:
			s.brokenf("execution %d of %s, which was killed, is %s", exec.ID, exec.JobName, exec.Status)
		}
		steps, err := r.Steps(ctx, exec.ID)
		if err != nil {
			return err
		}
		names := map[core.StepExecutionID]string{}
		for _, step := range steps {
			names[step.ID] = step.Name
			totals[step.Name] = totals[step.Name].Add(step.Counters)
			if step.EndedAt.IsZero() {
				s.brokenf("step %s of execution %d has no end: it is %s", step.Name, exec.ID, step.Status)
			}
		}
		skipped, err := skippedItems(ctx, r, exec.ID)
		if err != nil {
			return err
		}
		for _, item := range skipped {
			s.parts["skipped items"] = append(s.parts["skipped items"], fmt.Sprintf("step %s, %s %s: %s (%s: %s)",
				names[item.StepExecutionID], item.Phase, item.Meta, item.Item, item.Class, item.Error))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		if hasParts(totals, name) {
			continue // it adds up its parts, which are compared
		}
		c := totals[name]
		s.parts["counters"] = append(s.parts["counters"], fmt.Sprintf("step %s: read %d, filtered %d, written %d, skipped %d in read, %d in process, %d in write",
			name, c.Read, c.Filter, c.Write, c.ReadSkip, c.ProcessSkip, c.WriteSkip))
	}
	return nil
}

func hasParts(steps map[string]core.Counters, name string) bool {
	for other := range steps {
		if strings.HasPrefix(other, name+":") {
			return true
		}
	}
	return false
}

func (s *state) brokenf(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

func (s *state) compare(t *testing.T, want *state) {
	t.Helper()
	for _, b := range s.broken {
		t.Error(b)
	}
	headings := map[string]bool{}
	for h := range s.parts {
		headings[h] = true
	}
	for h := range want.parts {
		headings[h] = true
	}
	for _, h := range slices.Sorted(maps.Keys(headings)) {
		got, had := s.parts[h]
		wanted, should := want.parts[h]
		switch {
		case !had:
			t.Errorf("%s is missing; the undisturbed run has it", h)
		case !should:
			t.Errorf("%s is there, but the undisturbed run has none:\n%s", h, difference(nil, got))
		case !slices.Equal(got, wanted):
			t.Errorf("%s differs from that of the undisturbed run:\n%s", h, difference(wanted, got))
		}
	}
}
