// Package pgcluster starts a private PostgreSQL cluster for tests, and poolers: in its own folder,
// on a free loopback port, never as root, and removed even if its starter is killed.
//
// It needs initdb and postgres, from PATH or /usr/lib/postgresql/*/bin, pgbouncer from PATH or
// /usr/sbin, and a POSIX shell.
//
// It imports the PostgreSQL driver, and nothing of ours.
package pgcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled is a machine without PostgreSQL's server programs.
var ErrNotInstalled = errors.New("PostgreSQL (initdb, postgres) is neither on PATH nor in /usr/lib/postgresql/*/bin: " +
	"install it (Debian: apt-get install postgresql), or name a server's admin URL in SURFIN_TEST_POSTGRES; `make test` does this for you")

const superuser = "surfin"

// Cluster is a running PostgreSQL server.
type Cluster struct {
	process
	url string
}

// URL returns the URL of the superuser in the database postgres.
func (c *Cluster) URL() string { return c.url }

// Dir returns the cluster's folder. The file log in it is the server's log.
func (c *Cluster) Dir() string { return c.dir }

// Start starts a cluster without durability, as tests crash our processes, not the machine.
func Start(ctx context.Context, settings ...string) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, who, err := folder("pg")
	if err != nil {
		return nil, err
	}
	c, err := start(ctx, bin, dir, who, settings)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

func start(ctx context.Context, bin, dir string, who account, settings []string) (*Cluster, error) {
	password := rand.Text()
	secret := filepath.Join(dir, "password")
	if err := who.write(secret, password); err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", filepath.Join(dir, "data"),
		"--username", superuser, "--pwfile", secret, "--auth", "password",
		"--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir = dir
	who.apply(initdb)
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &Cluster{process: newProcess(dir)}
	c.url = (&url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/postgres", RawQuery: "sslmode=disable",
	}).String()
	if err := c.launch(bin, port, who, settings); err != nil {
		return nil, err
	}
	if err := c.ready(ctx, password); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) launch(bin string, port int, who account, settings []string) error {
	args := []string{filepath.Join(bin, "postgres"), "-D", filepath.Join(c.dir, "data")}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"max_connections=200", "shared_buffers=64MB",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"max_wal_size=512MB", "log_statement=none", "jit=off",
	}, settings...) { // the last one of a name counts
		args = append(args, "-c", setting)
	}
	return c.supervise(who, "INT", args...)
}

// Restart ends all sessions, as an administrator does, and returns when the server accepts
// connections.
func (c *Cluster) Restart(ctx context.Context) error { return c.Outage(ctx, "INT", 0) }

// Outage ends the server by INT (fast) or QUIT (immediate), and starts it again after the time.
func (c *Cluster) Outage(ctx context.Context, signal string, away time.Duration) error {
	before, err := c.startedAt(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.stdin, "again %s %.3f\n", signal, away.Seconds()); err != nil {
		return fmt.Errorf("restart the server: %w", err)
	}
	for {
		now, err := c.startedAt(ctx)
		if err == nil && now != before {
			return nil
		}
		if ctx.Err() != nil { // until then a session may still end with the old server
			return fmt.Errorf("restart the server: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

func (c *Cluster) startedAt(ctx context.Context) (at string, err error) {
	conn, err := c.connect(ctx, c.url)
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SELECT pg_postmaster_start_time()::text").Scan(&at)
	return at, errors.Join(err, conn.Close(ctx))
}

func (c *Cluster) ready(ctx context.Context, password string) error {
	conn, err := c.connect(ctx, c.url)
	if err != nil {
		return err
	}
	return errors.Join(cheapen(ctx, conn, password), conn.Close(ctx))
}

// cheapen stores the password with one hash instead of 4096: SCRAM took a quarter of the
// server's time.
func cheapen(ctx context.Context, conn *pgx.Conn, password string) error {
	setting := "SET password_encryption = md5"
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 16 {
		setting = "SET scram_iterations = 1"
	}
	if _, err := conn.Exec(ctx, setting); err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	if _, err := conn.Exec(ctx, "ALTER ROLE "+superuser+" PASSWORD '"+password+"'"); err != nil {
		return fmt.Errorf("store the password again: %w", err)
	}
	return nil
}

func binaries() (string, error) {
	var folders []string
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	for i := len(installed) - 1; i >= 0; i-- { // the newest first
		folders = append(folders, installed[i])
	}
	for _, folder := range folders {
		if executable(filepath.Join(folder, "initdb")) && executable(filepath.Join(folder, "postgres")) {
			return folder, nil
		}
	}
	return "", ErrNotInstalled
}
