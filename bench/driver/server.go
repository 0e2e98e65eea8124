package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const (
	// runDatabase is made again for every run, from the template of its workload.
	runDatabase    = "surfin_bench_run"
	templatePrefix = "surfin_bench_of_"
	ticksOfSecond  = 100
)

type server struct {
	cluster *pgcluster.Cluster // nil means that it is not ours
	url     string             // of a superuser
	pid     int                // of the postmaster; 0 means that it is on another machine
	version string
}

func durable() []string {
	return []string{"fsync=on", "synchronous_commit=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB", "autovacuum=off"}
}

func startServer(ctx context.Context, admin string, more ...string) (*server, error) {
	s := &server{url: admin}
	if admin == "" {
		cluster, err := pgcluster.Start(ctx, append(durable(), more...)...)
		if err != nil {
			return nil, err
		}
		s.cluster, s.url = cluster, cluster.URL()
	}
	if err := s.look(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) look(ctx context.Context) error {
	var folder string
	err := s.with(ctx, s.url, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT current_setting('server_version'), current_setting('data_directory')").Scan(&s.version, &folder)
	})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "postmaster.pid")) //nolint:gosec // of the server
	if err != nil {
		return nil //nolint:nilerr // it is on another machine, or another user's
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if s.pid, err = strconv.Atoi(first); err != nil {
		return fmt.Errorf("postmaster.pid of the server: %w", err)
	}
	return nil
}

func (s *server) stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

func (s *server) with(ctx context.Context, url string, f func(conn *pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return f(conn)
}

func (s *server) exec(ctx context.Context, database string, statements ...string) error {
	return s.with(ctx, s.urlOf(database), func(conn *pgx.Conn) error {
		for _, text := range statements {
			if _, err := conn.Exec(ctx, text); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
}

func (s *server) urlOf(database string) string {
	text, err := withDatabase(s.url, database)
	if err != nil {
		return s.url // it was parsed when the server was looked at
	}
	return text
}

func withDatabase(text, database string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	u.Path = "/" + database
	return u.String(), nil
}

// templateOf is the database that the runs of a workload begin with.
func templateOf(workload string) string { return templatePrefix + identifier(workload) }

// template makes the database that the runs of a workload begin with.
func (s *server) template(ctx context.Context, workload string, fill ...string) error {
	name := templateOf(workload)
	err := s.exec(ctx, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name+" TEMPLATE template0")
	if err != nil {
		return err
	}
	if err := prepareHistory(ctx, s.urlOf(name)); err != nil {
		return err
	}
	return s.exec(ctx, name, append(fill, "VACUUM ANALYZE")...)
}

func prepareHistory(ctx context.Context, url string) error {
	s, err := settings.Load(settings.Source{Dir: os.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true"}})
	if err != nil {
		return err
	}
	app, err := batch.New(ctx, s, batch.Log(nil))
	if err != nil {
		return err
	}
	return errors.Join(app.Prepare(ctx), app.Close(ctx))
}

// fresh makes the database of a run. The first connection to a new database makes a file with parts of its
// catalog, which takes longer than a job of one tasklet: with a CHECKPOINT and this connection before, no
// contestant pays for it.
func (s *server) fresh(ctx context.Context, workload string) error {
	err := s.exec(ctx, "postgres",
		"DROP DATABASE IF EXISTS "+runDatabase+" WITH (FORCE)",
		"CREATE DATABASE "+runDatabase+" TEMPLATE "+templateOf(workload))
	if err != nil {
		return err
	}
	return s.exec(ctx, runDatabase, "CHECKPOINT")
}

// cpu is the CPU time of the server so far, in seconds. The postmaster's ended
// children count as its own.
func (s *server) cpu() float64 {
	if s.pid == 0 {
		return -1
	}
	spent, _, ok := cpuOf(s.pid, true)
	if !ok {
		return -1
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return -1
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil {
			continue
		}
		if own, parent, ok := cpuOf(pid, false); ok && parent == s.pid {
			spent += own
		}
	}
	return float64(spent) / ticksOfSecond
}

// cpuOf is the CPU time of a process in ticks, with its ended children if asked, and its parent.
func cpuOf(pid int, withChildren bool) (spent, parent int, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, false // it has ended
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after) // the first one is field 3 of proc(5)
	if len(fields) < 15 {
		return 0, 0, false
	}
	times := fields[11:13] // utime, stime
	if withChildren {
		times = fields[11:15] // cutime, cstime
	}
	for _, text := range times {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, 0, false
		}
		spent += n
	}
	parent, err = strconv.Atoi(fields[1])
	return spent, parent, err == nil
}

func checkTable(ctx context.Context, w Work, name string) (err error) {
	conn, err := pgx.Connect(ctx, w.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var s summed
	if _, err := conn.PgConn().CopyTo(ctx, &s, "COPY (SELECT "+header+" FROM "+name+") TO STDOUT (FORMAT csv)"); err != nil {
		return err
	}
	return s.check(w)
}
