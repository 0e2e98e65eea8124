package repository

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// The conditions of the partial indexes of schema 2.15, literally: no database matches bind variables with them.
const (
	ownExit   = "exit_code NOT IN ('', 'COMPLETED', 'FAILED', 'STOPPED', 'NOOP', 'UNKNOWN', 'ABANDONED')"
	saidByJob = "(error_text <> '' OR active = 1 OR " + ownExit + ")"
	saidByAny = "(error_text <> '' OR " + ownExit + ")"
)

// searchStreams builds the streams of a search.
type searchStreams struct {
	store  *store
	search ports.ExecutionSearch
	walk   *walk
}

// all returns the streams, those first that select the fewest. Each takes an index as far as there is
// one.
func (b *searchStreams) all(ctx context.Context) (allOf, error) {
	var all allOf
	jobs := b.jobs()
	withJobs := func(is bool) {
		if is && jobs != nil {
			all, jobs = append(all, jobs), nil
		}
	}
	f := b.search.Filter
	withJobs(f.Instance != 0)
	for _, p := range b.search.Params {
		all = append(all, b.parameter(p))
	}
	times, err := b.times(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, times...)
	all = append(all, b.marked()...)
	if b.search.Text != "" {
		all = append(all, b.text())
	}
	withJobs(f.JobName != "" || len(f.Statuses) > 0 || f.ExitCode != "")
	if b.search.Actor != "" {
		all = append(all, b.actor())
	}
	if b.search.Worker != "" {
		worker, err := b.worker(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, worker)
	}
	withJobs(true) // the audit also has executions that were purged
	return all, nil
}

// jobs is the stream of the rows of executions, each path of it in the order of one index.
func (b *searchStreams) jobs() stream {
	f, where := b.search.Filter, &conditions{}
	where.add(f.Instance != 0, "x.instance_id = ?", f.Instance)
	where.add(f.JobName != "", "x.job_name = ?", f.JobName)
	where.add(len(f.Statuses) > 0, "x.status IN ?", f.Statuses)
	where.add(f.ExitCode != "", "x.exit_code = ?", f.ExitCode)
	where.add(!f.CreatedFrom.IsZero(), "x.created_at >= ?", instant{Time: f.CreatedFrom})
	where.add(!f.CreatedTo.IsZero(), "x.created_at < ?", instant{Time: f.CreatedTo})
	where.add(!b.search.EndedFrom.IsZero(), "x.ended_at >= ?", instant{Time: b.search.EndedFrom})
	where.add(!b.search.EndedTo.IsZero(), "x.ended_at < ?", instant{Time: b.search.EndedTo})
	took := "COALESCE(x.ended_at, {now}) - x.started_at > ?"
	switch b.store.db.Dialect() {
	case tx.Postgres:
		took += " * interval '1 microsecond'"
	case tx.MySQL:
		took = "timestampdiff(MICROSECOND, x.started_at, COALESCE(x.ended_at, {now})) > ?"
	case tx.SQLite:
	}
	where.add(b.search.LongerThan > 0, took, b.search.LongerThan.Microseconds())
	var paths anyOf
	path := func(c conditions) {
		paths = append(paths, &rowStream{table: "{job_execution}", id: "id", where: &c, match: where})
	}
	var c conditions
	c.add(f.JobName != "" && f.Instance == 0, "x.job_name = ?", f.JobName)
	switch {
	case f.Instance != 0:
		c.add(true, "x.instance_id = ?", f.Instance)
		path(c)
	case len(f.Statuses) > 0:
		for _, status := range f.Statuses {
			path(conditions{append(slices.Clone(c.texts), "x.status = ?"), append(slices.Clone(c.args), status)})
		}
	default:
		c.add(f.ExitCode != "", "x.exit_code = ?", f.ExitCode)
		path(c)
	}
	return &checkedStream{paths, "{job_execution}", "id", where}
}

// parameter is the stream of a parameter's value, over the index of the beginnings of values.
func (b *searchStreams) parameter(p ports.ParameterMatch) stream {
	var paths anyOf
	var values conditions
	for _, v := range p.Values {
		const is = "(x.value = ? AND x.type IN ?)"
		var where, match conditions
		where.add(true, "x.name = ?", p.Name)
		where.add(true, "substr(x.value, 1, 200) = substr(CAST(? AS text), 1, 200)", v.Text)
		match.add(true, is, v.Text, v.Types)
		values.add(true, is, v.Text, v.Types)
		paths = append(paths, &rowStream{table: "{job_execution_param}", id: "job_execution_id", where: &where, match: &match})
	}
	return &checkedStream{paths, "{job_execution_param}", "job_execution_id", &conditions{
		[]string{"x.name = ?", values.either()}, append([]any{p.Name}, values.args...),
	}}
}

// shortRange is the number of executions up to which the IDs of a range of times are read at once.
const shortRange = 5000

// times returns streams of short ranges of times, and lets the walk begin and end with the IDs of a
// long one. Times do not follow the order of IDs strictly: both ends of a long range are looked at.
func (b *searchStreams) times(ctx context.Context) (short []stream, err error) {
	f := b.search.Filter
	for _, r := range []struct {
		column   string
		from, to time.Time
	}{{"created_at", f.CreatedFrom, f.CreatedTo}, {"ended_at", b.search.EndedFrom, b.search.EndedTo}} {
		if r.from.IsZero() && r.to.IsZero() {
			continue
		}
		ids, err := b.ofTime(ctx, r.column, r.from, r.to, "")
		switch {
		case err != nil:
			return nil, err
		case len(ids) < shortRange:
			short = append(short, idStream(b.walk.sort(ids)))
			continue
		case r.column == "ended_at":
			ids = nil
			if r.from = (time.Time{}); r.to.IsZero() {
				continue // it may have begun long before
			}
		}
		newest, err := b.ofTime(ctx, "created_at", r.from, r.to, " DESC")
		if err != nil {
			return nil, err
		}
		if len(newest) > 0 {
			b.bound(append(ids, newest...), len(ids) > 0)
		}
	}
	return short, nil
}

// bound lets the walk begin with the largest of the IDs and end with the smallest, if that is known.
func (b *searchStreams) bound(ids []core.JobExecutionID, smallest bool) {
	w := b.walk
	low, high := slices.Min(ids), slices.Max(ids)
	if !smallest {
		low = 1
	}
	if w.up {
		w.from, w.to = max(w.from, low), min(w.to, high)
		return
	}
	w.from, w.to = min(w.from, high), max(w.to, low)
}

func (b *searchStreams) ofTime(ctx context.Context, column string, from, to time.Time, direction string) (ids []core.JobExecutionID, err error) {
	where := &conditions{}
	where.add(true, column+" IS NOT NULL")
	where.add(!from.IsZero(), column+" >= ?", instant{Time: from})
	where.add(!to.IsZero(), column+" < ?", instant{Time: to})
	err = b.store.scan(ctx, &ids, "SELECT id FROM {job_execution} WHERE "+where.text()+" ORDER BY "+column+direction+", id"+direction+" LIMIT ?", append(where.args, shortRange)...)
	return ids, err
}

// marked returns the streams of marks, which few executions have.
func (b *searchStreams) marked() (list []stream) {
	s := b.search
	if s.Redriven {
		list = append(list, &groupStream{"{job_execution}", "redrive_of", "x.redrive_of IS NOT NULL"})
	}
	if s.SkipsLeft {
		list = append(list, &groupStream{"{skipped_item}", "job_execution_id", "x.redriven_by IS NULL"})
	}
	if s.StopRequested {
		list = append(list, &rowStream{table: "{job_execution}", id: "id", where: &conditions{texts: []string{"stop_requested"}}, match: &conditions{}})
	}
	if s.Lost {
		match := &conditions{}
		match.add(true, "(error_text = ? OR active = 1 AND owner <> '' AND lease_until <= {now})", lostOwner)
		list = append(list, &rowStream{table: "{job_execution}", id: "id", where: &conditions{texts: []string{saidByJob}}, match: match})
	}
	return list
}

// text is the stream of executions with a text in their own errors and exit codes, or in those of
// their steps.
func (b *searchStreams) text() stream {
	like := gormtx.Like(b.store.db.Dialect())
	var is conditions
	for _, text := range variants(b.search.Text) {
		is.add(true, "error_text "+like+" ? ESCAPE '!'", "%"+likeText(text)+"%")
		is.add(true, "("+ownExit+" AND exit_code "+like+" ? ESCAPE '!')", "%"+likeText(text)+"%")
	}
	match := &conditions{[]string{is.either()}, is.args}
	return anyOf{
		&rowStream{table: "{job_execution}", id: "id", where: &conditions{texts: []string{saidByJob}}, match: match},
		&rowStream{table: "{step_execution}", id: "job_execution_id", sub: "id", where: &conditions{texts: []string{saidByAny}}, match: match},
	}
}

// variants returns the texts to look for: SQLite, and PostgreSQL with the locale C, know the case of ASCII
// letters only.
func variants(text string) []string {
	list := []string{text}
	for _, v := range []string{strings.ToLower(text), strings.ToUpper(text)} {
		if strings.ContainsFunc(text, func(r rune) bool { return r > 127 }) && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// actor is the stream of executions on which somebody acted.
func (b *searchStreams) actor() stream {
	by := b.search.Actor
	match := &conditions{}
	match.add(true, `(person = ? OR person = ? OR person LIKE ? ESCAPE '!')`, by, ports.ClientActor+by, likeText(by)+" (%")
	return &rowStream{table: "{audit}", id: "job_execution_id", sub: "id", where: &conditions{texts: []string{"verb <> ''"}}, match: match}
}

// worker is the stream of executions with a step that a worker had. A worker is known by its name, by
// its host or by its host and process.
func (b *searchStreams) worker(ctx context.Context) (stream, error) {
	name := b.search.Worker
	var owners []string
	if err := b.store.scan(ctx, &owners, "SELECT owner FROM {worker} WHERE name = ? AND owner <> ''", name); err != nil {
		return nil, err
	}
	patterns := []string{likeText(name) + "/%"}
	if at := strings.LastIndexByte(name, ':'); at > 0 {
		if _, err := strconv.ParseUint(name[at+1:], 10, 32); err == nil {
			patterns = append(patterns, likeText(name[:at])+"/%/"+name[at+1:]+"/%")
		}
	}
	for _, owner := range owners {
		patterns = append(patterns, likeText(owner))
	}
	var is conditions
	for _, p := range patterns {
		is.add(true, "x.owner LIKE ? ESCAPE '!'", p)
		is.add(true, "(x.assigned_from <> '' AND ' ' || x.assigned_from LIKE ? ESCAPE '!')", "% "+p+"%")
	}
	is.add(true, "(x.manager_id IS NOT NULL AND EXISTS (SELECT 1 FROM {placement} p WHERE p.part_id = x.id AND p.worker = ?))", name)
	return &rowStream{table: "{step_execution}", id: "job_execution_id", sub: "id", where: &conditions{}, match: &conditions{[]string{is.either()}, is.args}}, nil
}
